"""The F1 of white space: the places of inserted and deleted spaces."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.workloads.spelling.metrics.counts import Counts
from toolkit.workloads.spelling.metrics.whitespace import WhitespaceScore, score_whitespace


@st.composite
def triples(draw: st.DrawFn) -> tuple[str, str, str]:
    """The same letters with three kinds of spacing."""
    letters = draw(st.text("abc", max_size=8))
    one, two, three = (
        "".join(letter + " " * draw(st.integers(0, 2)) for letter in letters) for _ in range(3)
    )
    return one, two, three


def score(*lines: tuple[str, str, str]) -> WhitespaceScore:
    """Score triples of input, prediction and gold."""
    inputs, predictions, golds = zip(*lines, strict=True)
    return score_whitespace(inputs, predictions, golds)


def test_insertions_and_deletions_are_compared_by_their_places() -> None:
    # Needed: an insertion after "the", a deletion in "c at". Done: that insertion, and one in "sat".
    found = score(("thec at sat", "the c at s at", "the cat sat"))
    assert found.counts == Counts(true_positives=1, false_positives=1, false_negatives=1)
    assert (found.lines, found.equal, found.f1_sum) == (1, 0, 0.5)


def test_scores_of_lines_are_pooled_and_averaged() -> None:
    right, untouched = ("ab", "a b", "a b"), ("fine day", "fine day", "fine day")
    found = score(right, ("abcd", "abcd", "a b c d"), untouched, ("ab", "a b", "ab"))
    assert found.counts == Counts(true_positives=1, false_positives=1, false_negatives=3)
    assert found.counts.f1 == pytest.approx(1 / 3)
    assert (found.sequence_f1, found.sequence_accuracy) == (0.5, 0.5)


def test_white_space_around_a_text_and_repeated_white_space_are_not_edits() -> None:
    found = score(("  a  b\t", "a b", "a\u00a0b "))
    assert found == WhitespaceScore(lines=1, f1_sum=1.0, equal=1)


@given(st.lists(triples(), min_size=1, max_size=5))
def test_the_gold_line_scores_1(lines: list[tuple[str, str, str]]) -> None:
    found = score(*((text, gold, gold) for text, _, gold in lines))
    assert (found.sequence_f1, found.sequence_accuracy) == (1, 1)
    assert found.counts.false_positives == found.counts.false_negatives == 0
