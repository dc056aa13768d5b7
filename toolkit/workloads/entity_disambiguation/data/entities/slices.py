"""Slices of mentions by how often training has seen their gold: head, torso, tail, unseen."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.nlp.ratio import ratio
from toolkit.workloads.entity_disambiguation.config import BUILT_PREFIX, WHOLE_SLICE
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.sentences import UNKNOWN, Sentence, read_sentences
from toolkit.workloads.entity_disambiguation.metrics.slice_score import NOT_SCORED, OUTSIDE

Bools = npt.NDArray[np.bool_]

#: A mention belongs to a slice of its line when it does so with more than this probability.
MEMBER_ABOVE = 0.5


@dataclass(frozen=True, slots=True)
class GoldCounts:
    """Counts of each entity as the gold of a mention in training, in all and by alias."""

    entities: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, count_weak: bool = True) -> GoldCounts:
        """Count the golds that are known; weak labels too, unless they are left out."""
        counts = cls()
        for sentence in sentences:
            counts.add(sentence, count_weak=count_weak)
        return counts

    def add(self, sentence: Sentence, *, count_weak: bool = True) -> None:
        """Count the golds of one more sentence."""
        for mention in sentence.mentions:
            if mention.gold != UNKNOWN and (mention.is_gold or count_weak):
                self.entities[mention.gold] += 1
                self.aliases.setdefault(mention.alias, Counter())[mention.gold] += 1


def built_slices(
    count: npt.NDArray[np.integer],
    candidates: npt.NDArray[np.integer],
    is_popular: Bools,
    *,
    torso_above: int,
    head_above: int,
) -> dict[str, Bools]:
    """Return the members of every built slice: name -> [n].

    count       [n] how often the gold was a label in training
    candidates  [n] how many candidates the alias has
    is_popular  [n] whether the gold is the first of them

    HD: seen more than `head_above` times; TO: more than `torso_above` up to that; TL: at most
    `torso_above`, which includes TS: never; all: however often. NS_ keeps mentions with a choice of
    more than one candidate, NPOP_ those whose gold is not the first one.
    """
    kept = {"": np.ones(len(count), bool), "NS_": candidates > 1, "NPOP_": ~is_popular}
    seen = {
        "all": kept[""],
        "HD": count > head_above,
        "TO": (count > torso_above) & (count <= head_above),
        "TL": count <= torso_above,
        "TS": count == 0,
    }
    return {f"{BUILT_PREFIX}{a}{b}": kept[a] & seen[b] for a in kept for b in seen}


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Mentions in the order of a file; all arrays are [n].

    gold        place of the gold among the candidates, NOT_SCORED or OUTSIDE
    count       how often the gold was seen in training
    candidates  how many candidates the alias has
    popular     whether the gold is the first of them
    """

    gold: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]
    candidates: npt.NDArray[np.int32]
    popular: Bools

    @classmethod
    def of(cls, path: Path, database: EntityDatabase, counts: Mapping[str, int]) -> Survey:
        """Look up every mention of a file. Raises DataError that names file and line."""
        gold, count, candidates, popular = array("l"), array("q"), array("l"), array("b")
        for sentence in read_sentences(path):
            database.check_aliases(sentence, path)
            for mention in sentence.mentions:
                ids = [qid for qid, _ in database.candidates(mention.alias)]
                place = ids.index(mention.gold) if mention.gold in ids else OUTSIDE
                scored = mention.is_gold and mention.gold != UNKNOWN
                gold.append(place if scored else NOT_SCORED)
                count.append(counts.get(mention.gold, 0))
                candidates.append(len(ids))
                popular.append(place == 0)
        return cls(
            gold=np.array(gold, np.int32),
            count=np.array(count, np.int64),
            candidates=np.array(candidates, np.int32),
            popular=np.array(popular, np.bool_),
        )

    def slices(self, *, torso_above: int, head_above: int) -> dict[str, Bools]:
        """Return the members of the built slices."""
        return built_slices(
            self.count, self.candidates, self.popular, torso_above=torso_above, head_above=head_above
        )

    def rows(self, slices: Mapping[str, Bools]) -> Iterable[dict[str, Any]]:
        """Yield facts about each slice before anything is trained; all scored mentions first."""
        yield self._row(WHOLE_SLICE, np.ones(len(self.gold), np.bool_))
        for name, members in slices.items():
            yield self._row(name, members)

    def _row(self, name: str, members: Bools) -> dict[str, Any]:
        scored = members & (self.gold != NOT_SCORED)
        reachable = scored & (self.gold != OUTSIDE)
        mentions = int(np.count_nonzero(scored))
        return {
            "slice": name,
            "mentions": mentions,
            "gold_outside": mentions - int(np.count_nonzero(reachable)),
            "candidates": ratio(int(self.candidates[scored].sum()), mentions),
            "chance": ratio(float((1 / self.candidates[reachable]).sum()), mentions),
            "popularity": ratio(int(np.count_nonzero(scored & self.popular)), mentions),
        }
