"""Slices of mentions by how often training has seen the gold: head, torso, tail, unseen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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

#: A mention is a member of a slice of its line if the line gives it a higher probability than this.
MEMBER_ABOVE = 0.5


@dataclass(frozen=True, slots=True)
class GoldCounts:
    """How often each entity is the gold of a mention in training, in total and by alias."""

    entities: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, count_weak: bool = True) -> GoldCounts:
        """Count the known golds of sentences, by default including weak labels."""
        counts = cls()
        for sentence in sentences:
            counts.add(sentence, count_weak=count_weak)
        return counts

    def add(self, sentence: Sentence, *, count_weak: bool = True) -> None:
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
    candidates  [n] number of candidates of the alias
    is_popular  [n] whether the gold is the first candidate

    HD: the gold was seen more than `head_above` times. TO: more than `torso_above` times, but not HD. TL: at
    most `torso_above` times. TS: never (a part of TL). all: any number of times. NS_: only mentions with more
    than one candidate. NPOP_: only mentions with a gold that is not the first candidate.
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


#: A mention: position of the gold among the candidates, or NOT_SCORED or OUTSIDE; how often training has seen
#: the gold; number of candidates; whether the gold is the first candidate.
_MENTION = np.dtype([("gold", "<i4"), ("count", "<i8"), ("candidates", "<i4"), ("popular", "?")])


@dataclass(frozen=True, slots=True)
class Survey:
    """The mentions of a file, in its order: [n] with the fields of _MENTION."""

    mentions: npt.NDArray[np.void]

    @classmethod
    def of(cls, path: Path, database: EntityDatabase, counts: Mapping[str, int]) -> Survey:
        """Look up every mention of a file. Raises DataError with file and line."""
        return cls(np.fromiter(_look_up(path, database, counts), _MENTION))

    def slices(self, *, torso_above: int, head_above: int) -> dict[str, Bools]:
        columns = (self.mentions[name] for name in ("count", "candidates", "popular"))
        return built_slices(*columns, torso_above=torso_above, head_above=head_above)

    def rows(self, slices: Mapping[str, Bools]) -> Iterator[dict[str, Any]]:
        """Yield the properties of each slice, first those of all scored mentions."""
        for name, members in {WHOLE_SLICE: np.ones(len(self.mentions), np.bool_), **slices}.items():
            scored = self.mentions[members & (self.mentions["gold"] != NOT_SCORED)]
            reachable = scored["candidates"][scored["gold"] != OUTSIDE]
            yield {
                "slice": name,
                "mentions": len(scored),
                "gold_outside": len(scored) - len(reachable),
                "candidates": ratio(int(scored["candidates"].sum()), len(scored)),
                "chance": ratio(float((1 / reachable).sum()), len(scored)),
                "popularity": ratio(int(np.count_nonzero(scored["popular"])), len(scored)),
            }


def _look_up(
    path: Path, database: EntityDatabase, counts: Mapping[str, int]
) -> Iterator[tuple[int, int, int, bool]]:
    for sentence in read_sentences(path):
        database.check_aliases(sentence, path)
        for mention in sentence.mentions:
            ids = [qid for qid, _ in database.candidates(mention.alias)]
            place = ids.index(mention.gold) if mention.gold in ids else OUTSIDE
            is_scored = mention.is_gold and mention.gold != UNKNOWN
            count = counts.get(mention.gold, 0)
            yield place if is_scored else NOT_SCORED, count, len(ids), place == 0
