"""The mean normalised edit distance."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.workloads.spelling.metrics.correction import CorrectionScore, score_corrections

lines = st.lists(st.tuples(st.text("ab ", max_size=8), st.text("ab ", max_size=8)), min_size=2, max_size=6)


def score(*pairs: tuple[str, str]) -> CorrectionScore:
    predictions = [prediction for prediction, _ in pairs]
    return score_corrections(predictions, predictions, [gold for _, gold in pairs])


def test_a_distance_is_divided_by_the_longer_line() -> None:
    # kitten, sitting: two replacements, one insertion. A swap is two edits.
    assert score(("kitten", "sitting")).mned == pytest.approx(3 / 7)
    assert score(("ab", "ba")).mned == 1.0


def test_it_is_the_mean_of_lines_after_white_space_is_normalised() -> None:
    assert score(("ab", "cd"), (" a  b ", "a b"), ("", "")).mned == pytest.approx(1 / 3)
    assert CorrectionScore().mned == 0.0


@given(lines)
def test_scores_of_parts_add_up_within_bounds(pairs: list[tuple[str, str]]) -> None:
    whole, parts = score(*pairs), score(*pairs[:1]) + score(*pairs[1:])
    assert (whole.lines, whole.distances) == (parts.lines, pytest.approx(parts.distances))
    assert 0 <= whole.mned <= 1
