"""The F1 of white space: what is inserted and deleted, where."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.workloads.spelling.metrics.counts import Counts
from toolkit.workloads.spelling.metrics.whitespace import WhitespaceScore, score_whitespace


@st.composite
def triples(draw: st.DrawFn) -> tuple[str, str, str]:
    """The same letters, spaced in three ways."""
    letters = draw(st.text("abc", max_size=8))
    one, two, three = (
        "".join(letter + " " * draw(st.integers(0, 2)) for letter in letters) for _ in range(3)
    )
    return one, two, three


def score(*lines: tuple[str, str, str]) -> WhitespaceScore:
    """Of triples input, prediction, gold."""
    inputs, predictions, golds = zip(*lines, strict=True)
    return score_whitespace(inputs, predictions, golds)


def test_insertions_and_deletions_count_where_they_are() -> None:
    # To be done: insert after "the", delete in "c at". Done: that insertion, and one in "sat".
    found = score(("thec at sat", "the c at s at", "the cat sat"))
    assert found.counts == Counts(true_positives=1, false_positives=1, false_negatives=1)
    assert (found.lines, found.equal, found.f1_sum) == (1, 0, 0.5)


def test_lines_are_averaged_or_pooled() -> None:
    found = score(("ab", "a b", "a b"), ("abcd", "abcd", "a b c d"), ("fine day", "fine day", "fine day"))
    assert found.counts == Counts(true_positives=1, false_negatives=3)
    assert found.counts.f1 == pytest.approx(0.4)
    assert found.sequence_f1 == pytest.approx(2 / 3)
    assert found.sequence_accuracy == pytest.approx(2 / 3)


def test_white_space_around_and_in_a_row_is_no_edit() -> None:
    found = score(("  a  b\t", "a b", "a\u00a0b "))
    assert found == WhitespaceScore(lines=1, f1_sum=1.0, equal=1)


def test_other_edits_are_no_repair_of_white_space() -> None:
    with pytest.raises(ValueError, match="more than white space"):
        score(("a b", "a c", "ab"))
    with pytest.raises(ValueError, match="more than white space"):
        score(("a b", "ab", "a c"))


@given(st.lists(triples(), min_size=2, max_size=5))
def test_scores_add_up_and_lie_between_0_and_1(lines: list[tuple[str, str, str]]) -> None:
    whole, parts = score(*lines), score(*lines[:1]) + score(*lines[1:])
    assert (whole.counts, whole.lines, whole.equal) == (parts.counts, parts.lines, parts.equal)
    assert whole.f1_sum == pytest.approx(parts.f1_sum)
    assert 0 <= whole.counts.f1 <= 1
    assert 0 <= whole.sequence_f1 <= 1


@given(st.lists(triples(), min_size=1, max_size=5))
def test_the_gold_itself_is_perfect(lines: list[tuple[str, str, str]]) -> None:
    found = score(*((text, gold, gold) for text, _, gold in lines))
    assert (found.sequence_f1, found.sequence_accuracy) == (1, 1)
    assert found.counts.false_positives == found.counts.false_negatives == 0
