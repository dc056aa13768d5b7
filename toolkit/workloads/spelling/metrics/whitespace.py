"""Scores of the repair of white space: which spaces had to be inserted and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.nlp.ratio import ratio
from toolkit.workloads.spelling.data.texts.repairs import differs_in_space, spaces_in
from toolkit.workloads.spelling.metrics.counts import NOTHING, Additive, Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceScore(Additive):
    """Edits of white space, pooled and by line.

    f1_sum  sum of the F1 of the lines; 1 for a line without edits that needs none
    equal   lines whose white space is right
    """

    counts: Counts = NOTHING
    lines: int = 0
    f1_sum: float = 0.0
    equal: int = 0

    @property
    def sequence_f1(self) -> float:
        """Mean over lines of their F1."""
        return ratio(self.f1_sum, self.lines)

    @property
    def sequence_accuracy(self) -> float:
        return ratio(self.equal, self.lines)


def score_whitespace(
    inputs: Sequence[str], predictions: Sequence[str], golds: Sequence[str]
) -> WhitespaceScore:
    """Compare which spaces were inserted and deleted with which had to be.

    Raises ValueError if the lines of a place differ in more than white space.
    """
    found = [_counts(*lines) for lines in zip(inputs, predictions, golds, strict=True)]
    return WhitespaceScore(
        counts=sum(found, NOTHING),
        lines=len(found),
        f1_sum=sum(1.0 if each == NOTHING else each.f1 for each in found),
        equal=sum(not each.false_positives and not each.false_negatives for each in found),
    )


def _counts(text: str, prediction: str, gold: str) -> Counts:
    if not differs_in_space(text, prediction) or not differs_in_space(text, gold):
        raise ValueError("the lines differ in more than white space")
    spaces = spaces_in(text)
    # What kind of edit a place needs follows from the text: the places are the edits.
    return Counts.of_sets(spaces ^ spaces_in(gold), spaces ^ spaces_in(prediction))
