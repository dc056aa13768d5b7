"""Scores of choices among candidates."""

from __future__ import annotations

import numpy as np

from tests.toolkit.workloads.entity_disambiguation.scorer import score
from toolkit.workloads.entity_disambiguation.metrics.slice_score import SliceScore

GOLDS, PREDICTED = np.array([0, -2, 1, -1, 0, 3]), np.array([1, 2, 0, 1, 0, 3])
ALL = np.ones(6, bool)


def six(found: SliceScore) -> tuple[float, ...]:
    return (
        found.mentions,
        found.mentions_not_nc,
        found.accuracy,
        found.accuracy_not_nc,
        found.popularity,
        found.popularity_not_nc,
    )


def test_the_scorer_gives_the_numbers_of_the_original() -> None:
    assert six(score(GOLDS, PREDICTED, ALL)) == (5, 4, 2 / 5, 2 / 4, 2 / 5, 2 / 4)
    part = np.array([0, 1, 0, 0, 1, 0], bool)
    assert six(score(GOLDS, PREDICTED, part)) == (2, 1, 1 / 2, 1, 1 / 2, 1)


def test_the_scorer_gives_the_numbers_of_the_original_with_no_candidate_as_a_class() -> None:
    golds, predicted = np.array([0, 3, 2, -1, 1, 4]), np.array([0, 3, 0, 1, 2, 4])
    assert six(score(golds, predicted, ALL, no_candidate=True)) == (5, 4, 3 / 5, 2 / 4, 1 / 5, 1 / 4)


def test_a_gold_outside_the_candidates_is_wrong_whatever_is_predicted() -> None:
    outside = np.array([-2, -2])
    assert score(outside, np.array([-2, 0]), ALL[:2]).correct == 0


def test_a_slice_without_mentions_has_accuracy_0() -> None:
    assert six(score(GOLDS, PREDICTED, ~ALL)) == (0, 0, 0, 0, 0, 0)
