"""How far a correction is from what it should be, in characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from toolkit.metrics.slice_score import ratio
from toolkit.spelling.words import normalised


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceScore:
    """Lines and the sum of their normalised edit distances; scores of parts add up to that of the whole."""

    lines: int = 0
    distances: float = 0.0

    def __add__(self, other: DistanceScore) -> DistanceScore:
        return DistanceScore(lines=self.lines + other.lines, distances=self.distances + other.distances)

    @property
    def mean(self) -> float:
        """Mean normalised edit distance, MNED: 0 where all lines are as they should be, 1 at worst."""
        return ratio(self.distances, self.lines)


def score_distances(predictions: Sequence[str], golds: Sequence[str]) -> DistanceScore:
    """Sum up Levenshtein's distance over the length of the longer one of each pair of lines.

    Insertions, deletions and replacements of characters cost 1; swaps are two edits.
    """
    pairs = zip(predictions, golds, strict=True)
    return DistanceScore(
        lines=len(golds),
        distances=sum(
            Levenshtein.normalized_distance(normalised(prediction), normalised(gold))
            for prediction, gold in pairs
        ),
    )
