"""Scores of the repair of white space: which spaces should be inserted and deleted, and which ones were."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from toolkit.nlp.ratio import ratio
from toolkit.workloads.spelling.data.texts.repairs import spaces_in
from toolkit.workloads.spelling.metrics.counts import NOTHING, Counts, LineScore


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceScore(LineScore):
    """Edits of white space.

    equal   lines with the right white space
    """

    equal: int = 0

    @property
    def sequence_accuracy(self) -> float:
        return ratio(self.equal, self.lines)


def score_whitespace(
    inputs: Sequence[str], predictions: Sequence[str], golds: Sequence[str]
) -> WhitespaceScore:
    """Compare the inserted and deleted spaces with the ones that should be inserted and deleted.

    The three lines at a place may differ only in white space.
    """
    found = [_counts(*map(spaces_in, lines)) for lines in zip(inputs, predictions, golds, strict=True)]
    return WhitespaceScore(
        counts=sum(found, NOTHING),
        lines=len(found),
        f1_sum=sum(1.0 if each == NOTHING else each.f1 for each in found),
        equal=sum(not each.false_positives and not each.false_negatives for each in found),
    )


def _counts(spaces: Set[int], found: Set[int], gold: Set[int]) -> Counts:
    # The text determines whether an edit is an insertion or a deletion, so only the places are compared.
    wanted, done = spaces ^ gold, spaces ^ found
    right = len(wanted & done)
    return Counts(
        true_positives=right, false_positives=len(done) - right, false_negatives=len(wanted) - right
    )
