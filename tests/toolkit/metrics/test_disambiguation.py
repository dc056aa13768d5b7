"""Scores of choices among candidates, and of mentions found in text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.metrics.disambiguation import Link, LinkingScore, score, score_links
from toolkit.metrics.slice_score import SliceScore

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


@given(
    st.lists(st.tuples(st.integers(-2, 4), st.integers(0, 4), st.booleans()), max_size=30),
    st.integers(0, 30),
    st.booleans(),
)
def test_scores_of_parts_add_up_to_that_of_the_whole(
    mentions: list[tuple[int, int, bool]], cut: int, no_candidate: bool
) -> None:
    def of(part: list[tuple[int, int, bool]]) -> SliceScore:
        golds, predicted, members = np.array(part, int).reshape(-1, 3).T
        return score(golds, predicted, members.astype(bool), no_candidate=no_candidate)

    assert of(mentions[:cut]) + of(mentions[cut:]) == of(mentions)


# ---- mentions found in text


def test_precision_recall_and_f1_are_those_of_the_tutorial() -> None:
    found = LinkingScore(found=79, expected=78, matched=62)
    assert [round(each, 3) for each in (found.precision, found.recall, found.f1)] == [0.785, 0.795, 0.790]


def test_nothing_found_is_0() -> None:
    nothing = score_links([[]], [[]])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


def link(start: int, end: int, entity: str = "Q1", probability: float = 1.0) -> Link:
    return Link(start=start, end=end, entity=entity, probability=probability)


@pytest.mark.parametrize(
    "found, weak, exact",
    [
        (link(3, 8), 1, 1),
        (link(3, 9), 1, 0),
        (link(0, 4), 1, 0),
        (link(0, 3), 0, 0),
        (link(8, 9), 0, 0),
        (link(3, 8, "Q2"), 0, 0),
    ],
)
def test_a_match_overlaps_or_has_both_ends(found: Link, weak: int, exact: int) -> None:
    expected = [[link(3, 8)]]
    assert score_links([[found]], expected).matched == weak
    assert score_links([[found]], expected, exact=True).matched == exact


def test_a_mention_is_matched_once() -> None:
    assert score_links([[link(0, 4), link(2, 6)]], [[link(0, 6)]]) == LinkingScore(
        found=2, expected=1, matched=1
    )


def test_what_is_unsure_is_left_out() -> None:
    found = [[link(0, 4, probability=0.4), link(5, 9, probability=0.6)]]
    expected = [[link(0, 4), link(5, 9)]]
    assert score_links(found, expected, threshold=0.5) == LinkingScore(found=1, expected=2, matched=1)
    assert score_links(found, expected, threshold=0.4).found == 2


def test_texts_are_kept_apart() -> None:
    assert score_links([[link(0, 4)], []], [[], [link(0, 4)]]).matched == 0
