"""The members of slices: built slices, slices of lines, SQL conditions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.toolkit.workloads.entity_disambiguation.entity_files import line
from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.samples.prepared import MentionSet, prepare

Make = Callable[..., EntityMentions]


def sliced(data: EntityMentions, *names: str, **conditions: str) -> MentionSet:
    return prepare(dataclasses.replace(data, eval_slices=names, slices=conditions))


def test_members_of_built_slices_follow_the_counts_of_training(data: EntityMentions) -> None:
    prepared = sliced(data, "unif_HD", "unif_TO", "unif_TL", "unif_TS", "unif_NPOP_all")
    split = prepared.split("train")
    head, torso, tail, unseen, unpopular = split.members.T
    assert (head.astype(int) + torso + tail == 1).all()
    assert not unseen.any()
    assert (unpopular == (split.labels != 0)).all()


def test_conditions_read_the_columns_of_mentions(data: EntityMentions) -> None:
    prepared = sliced(
        data, "rivers", "wide", rivers="gold LIKE '%.river'", wide="candidates > 2 AND line < 5"
    )
    split = prepared.split("train")
    assert (split.members[:, 0] == (split.labels == 0)).all()
    assert 0 < split.members[:, 1].sum() < len(split)
    assert prepared.meta["slice_sizes"]["rivers"]["train"] == (split.labels == 0).sum()


def test_a_mention_is_a_member_of_a_slice_of_its_line_above_one_half(other: Make) -> None:
    record = line(1, [("arn", "town"), ("bel", "town")], slices={"odd": {"0": 0.5, "1": 0.51}})
    prepared = prepare(other("test", record, eval_slices=("odd",)))
    assert prepared.split("test").members.tolist() == [[False], [True]]
    assert not prepared.split("train").members.any()


def test_unknown_slice_is_refused_with_the_known_slices(data: EntityMentions) -> None:
    with pytest.raises(DataError, match=r"names 'river', but no line has.*unif_NPOP_TS, rivers"):
        prepare(dataclasses.replace(data, eval_slices=("river",), slices={"rivers": "label = 0"}))


@pytest.mark.parametrize(
    "condition, reason",
    [
        ("candidate > 2", "no such column: candidate"),
        ("gold = ", "syntax error"),
        ("1) ; DELETE FROM mentions WHERE (1", "one statement|syntax error"),
        ("(SELECT count(*) FROM entities) > 1", "prohibited|not authorized"),
        ("load_extension('x')", "not authorized|no such function"),
        ("1 IN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n)", "not auth"),
        ("1) UNION SELECT gold FROM mentions --", "cannot be evaluated"),
    ],
)  # fmt: skip
def test_a_faulty_condition_is_reported_with_the_reason(
    data: EntityMentions, condition: str, reason: str
) -> None:
    with pytest.raises(DataError, match=f"(?s){reason}") as caught:
        sliced(data, "own", own=condition)
    assert repr(condition) in str(caught.value)
    assert "data.slices.own" in str(caught.value)
    assert "candidates, is_popular" in str(caught.value)


def test_an_empty_slice_has_no_members(data: EntityMentions) -> None:
    prepared = sliced(data, "none", none="line < 0")
    assert not prepared.split("test").members.any()
    assert prepared.meta["slice_sizes"]["none"] == {"train": 0, "validation": 0, "test": 0}


def test_sizes_count_only_scored_mentions(other: Make) -> None:
    record: dict[str, Any] = line(1, [("arn", "town"), ("bel", "town")], gold=[True, False])
    prepared = prepare(other("test", record, eval_slices=("unif_all",)))
    assert prepared.meta["slice_sizes"]["unif_all"]["test"] == 1
    assert np.array_equal(prepared.split("test").members[:, 0], [True, True])
