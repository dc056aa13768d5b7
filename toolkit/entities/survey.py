"""The mentions of a file against a database and training: what slices are made of, and baselines."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.entities.checks import check_candidates
from toolkit.entities.database import EntityDatabase
from toolkit.entities.sentences import RESERVED_SLICE, UNKNOWN, read_sentences
from toolkit.entities.slices import Bools, built_slices
from toolkit.metrics.disambiguation import NOT_SCORED, OUTSIDE


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
            check_candidates(sentence, database, path)
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
        """Yield what is to be known of each slice before anything is trained; all scored mentions first."""
        yield self._row(RESERVED_SLICE, np.ones(len(self.gold), np.bool_))
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
            "candidates": _share(int(self.candidates[scored].sum()), mentions),
            "chance": _share(float((1 / self.candidates[reachable]).sum()), mentions),
            "popularity": _share(int(np.count_nonzero(scored & self.popular)), mentions),
        }


def _share(part: float, whole: int) -> float:
    return float(part) / whole if whole else 0.0
