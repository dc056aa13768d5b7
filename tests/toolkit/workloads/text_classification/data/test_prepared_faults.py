"""Faults of data and settings are reported, and leave no files."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.text_classification.data.films import left_over
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.prepared import prepare


def refused(data: TextTable) -> str:
    with pytest.raises(DataError) as caught:
        prepare(data)
    assert left_over(data) == []
    return str(caught.value)


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"labels": ("a", "a")}, "data.labels: found a more than once"),
        ({"labels": ()}, "data.labels: found an empty list"),
        ({"splits": {"train": 1.0, "test": 1e-9}}, "none is left for 'test'"),
        ({"min_count": 1000}, "lower data.min_count"),
        ({"label_column": "text"}, "is column 'text' (data.label_column) not the label?"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_key(
    table: TextTable, changed: dict[str, Any], told: str
) -> None:
    assert told in refused(dataclasses.replace(table, **changed))


@pytest.mark.parametrize("stage", ["read", "tokenize"])
def test_a_change_of_a_file_during_preparation_is_an_error(table: TextTable, stage: str) -> None:
    def meddle(at: str, done: int, total: int | None) -> None:
        if at == stage and done:
            with open(str(table.path), "a") as stream:
                stream.write("one more\tpositive\n")

    with pytest.raises(DataError, match="changed while"):
        prepare(table, meddle)
    assert left_over(table) == []


def test_progress_reaches_the_end_of_every_stage(table: TextTable) -> None:
    last: dict[str, tuple[int, int | None]] = {}
    prepared = prepare(table, lambda stage, done, total: last.__setitem__(stage, (done, total)))
    size = Path(str(table.path)).stat().st_size
    tokens = prepared.meta["tokens"]
    assert last == {
        "hash": (size, size),
        "read": (60, None),
        "tokenize": (60, 60),
        "encode": (tokens, tokens),
    }
