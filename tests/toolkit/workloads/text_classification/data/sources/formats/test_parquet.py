"""Tables in Parquet files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.checks import table_violations, table_warnings
from toolkit.workloads.text_classification.data.prepared import prepare
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import read_rows

pyarrow = pytest.importorskip("pyarrow")

TEXTS = [f"film {number} \N{SNOWMAN}" for number in range(6000)]


def written(path: Path, **columns: list[Any]) -> Path:
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path, row_group_size=1000)
    return path


def rows(path: Path, **settings: Any) -> list[tuple[int, str, str]]:
    return [(row.line, row.text, row.label) for row in read_rows(path, TextTable(**settings))]


def test_the_named_columns_are_read_in_the_order_of_the_rows(tmp_path: Path) -> None:
    labels = [number % 3 for number in range(6000)]
    path = written(tmp_path / "a.parquet", other=TEXTS, body=TEXTS, stars=labels)
    found = rows(path, text_column="body", label_column="stars")
    expected = zip(range(1, 6001), TEXTS, map(str, labels), strict=True)
    assert found == list(expected)


def test_missing_values_are_empty_and_categories_are_texts(tmp_path: Path) -> None:
    label = pyarrow.array(["good", None, "bad"]).dictionary_encode()
    path = written(tmp_path / "a.parquet", text=["a", "b", None], label=label)
    assert rows(path) == [(1, "a", "good"), (2, "b", ""), (3, "", "bad")]


def test_a_prepared_set_can_be_made_from_parquet(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", text=TEXTS[:50], label=["good", "bad"] * 25)
    data = TextTable(path=str(path), prepared_dir=str(tmp_path / "prepared"))
    assert list(table_violations(data)) == list(table_warnings(data)) == []
    assert sum(prepare(data).splits.values()) == 50


@pytest.mark.parametrize(
    "columns, told",
    [
        ({"text": ["a"], "labels": ["b"]}, "did you mean 'labels'"),
        ({"text": ["a"], "label": [["b"]]}, "row 1: 'label' is of type list"),
        ({"text": ["a", "b"], "label": [None, True]}, "row 2: 'label' is of type bool"),
        ({"text": [], "label": []}, "no rows"),
    ],
)
def test_a_fault_is_reported_before_a_job(tmp_path: Path, columns: dict[str, list[Any]], told: str) -> None:
    path = written(tmp_path / "a.parquet", **columns)
    (violation,) = table_violations(TextTable(path=str(path)))
    assert violation.key == ("data", "path")
    assert told in violation.problem


@pytest.mark.parametrize("cut", [0, 3, 500])
def test_a_damaged_parquet_file_is_reported(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "a.parquet", text=TEXTS, label=TEXTS)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match="not a complete Parquet file"):
        rows(path)


def test_a_missing_parquet_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        rows(tmp_path / "a.parquet")


def test_missing_pyarrow_is_reported_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.parquet", text=["a"], label=["b"])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"slurm-toolkit\[parquet\]"):
        rows(path)
