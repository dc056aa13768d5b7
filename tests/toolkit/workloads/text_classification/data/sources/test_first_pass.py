"""The first reading decides which rows are used, their labels and their splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.text_classification.data.films import write_table
from toolkit.errors import DataError
from toolkit.workload import silent
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.first_pass import Survey, survey
from toolkit.workloads.text_classification.data.sources.labels import describe_skipped
from toolkit.workloads.text_classification.data.sources.source_files import find_sources

Rows = list[tuple[str, str]]


def surveyed(data: TextTable) -> Survey:
    return survey(data, find_sources(data, silent), silent)


def refused(data: TextTable) -> str:
    with pytest.raises(DataError) as caught:
        surveyed(data)
    return str(caught.value)


def one_file(tmp_path: Path, rows: Rows, **options: Any) -> TextTable:
    return TextTable(path=write_table(tmp_path / "mails.tsv", rows), **options)


def files(tmp_path: Path, train: Rows, validation: Rows, **options: Any) -> TextTable:
    return TextTable(
        train=write_table(tmp_path / "train.tsv", train),
        validation=write_table(tmp_path / "dev.tsv", validation),
        **options,
    )


def some(count: int, label: str) -> Rows:
    return [(f"text {number}", label) for number in range(count)]


def test_rows_with_unknown_labels_are_counted_by_label_with_their_first_line(tmp_path: Path) -> None:
    rows = [*some(10, "ham"), ("x", "spma"), *some(10, "spam"), ("y", "eggs"), ("z", "spma")]
    found = surveyed(one_file(tmp_path, rows, labels=("ham", "spam")))
    assert len(found) == 20
    assert found.source_rows == (23,)
    assert found.skipped.to_json()["unknown_labels"] == {
        "rows": 3,
        "labels": [
            {"label": "spma", "rows": 2, "first": f"{tmp_path}/mails.tsv:12"},
            {"label": "eggs", "rows": 1, "first": f"{tmp_path}/mails.tsv:23"},
        ],
    }


def test_unknown_labels_do_not_change_the_shares_of_the_splits(tmp_path: Path) -> None:
    rows = [*some(50, "other"), *some(100, "ham")]
    found = surveyed(
        one_file(tmp_path, rows, labels=("ham",), splits={"train": 0.7, "validation": 0.2, "test": 0.1})
    )
    assert found.text_split is not None
    assert [int((found.text_split == split).sum()) for split in range(3)] == [70, 20, 10]


def test_the_error_of_a_file_without_known_labels_lists_the_labels_found(tmp_path: Path) -> None:
    told = refused(one_file(tmp_path, [*some(5, "Ham"), *some(5, "Spam")], labels=("ham", "spam")))
    assert "mails.tsv: no row has one of the labels (ham, spam); found: Ham, Spam" in told
    assert f"(the first one at {tmp_path}/mails.tsv:2)" in told


def test_each_file_needs_a_known_label(tmp_path: Path) -> None:
    data = files(tmp_path, some(5, "ham"), some(5, "Ham"), labels=("ham", "spam"))
    assert "dev.tsv: no row has one of the labels" in refused(data)


def test_labels_that_are_only_in_the_validation_set_are_unknown(tmp_path: Path) -> None:
    data = files(tmp_path, some(5, "ham"), [*some(2, "ham"), ("x", "spam")])
    found = surveyed(data)
    assert (found.labels, len(found)) == (("ham",), 7)
    assert found.skipped.to_json()["unknown_labels"]["labels"] == [
        {"label": "spam", "rows": 1, "first": f"{tmp_path}/dev.tsv:4"}
    ]


def test_given_labels_may_be_missing_in_the_training_set(tmp_path: Path) -> None:
    data = files(tmp_path, some(5, "ham"), some(2, "spam"), labels=("spam", "ham"))
    found = surveyed(data)
    assert (found.labels, found.text_label.tolist()) == (("spam", "ham"), [1] * 5 + [0] * 2)


@pytest.mark.parametrize("empty", ["", "  ", "\u2003"])
def test_rows_without_a_label_or_a_text_are_counted(tmp_path: Path, empty: str) -> None:
    rows = [("x", empty), *some(10, "ham"), (empty, "ham"), (empty, "unheard of"), (empty, empty)]
    found = surveyed(one_file(tmp_path, rows, labels=("ham",)))
    assert len(found) == 10
    assert found.skipped.to_json() == {
        "unknown_labels": {"rows": 0, "labels": []},
        "empty_labels": {"rows": 2, "first": f"{tmp_path}/mails.tsv:2"},
        "empty_texts": {"rows": 2, "first": f"{tmp_path}/mails.tsv:13"},
    }


def test_a_column_without_texts_is_refused(tmp_path: Path) -> None:
    told = refused(one_file(tmp_path, [("", "ham")] * 3))
    assert "mails.tsv: no row can be used: 'text' is empty in 3 rows, from " in told


def test_each_reason_for_skipped_rows_is_described_in_a_line(tmp_path: Path) -> None:
    rows = [*some(10, "ham"), ("x", ""), ("", "ham"), *[("x", f"odd {number}") for number in range(7)]]
    found = surveyed(one_file(tmp_path, rows, labels=("ham",)))
    assert describe_skipped(found.skipped.to_json()) == [
        "left out 7 rows with unknown labels: 'odd 0' 1, 'odd 1' 1, 'odd 2' 1, 'odd 3' 1, 'odd 4' 1, …; "
        f"one is {tmp_path}/mails.tsv:14",
        f"left out 1 row without a label, from {tmp_path}/mails.tsv:12 on",
        f"left out 1 row without a text, from {tmp_path}/mails.tsv:13 on",
    ]


def test_the_manifest_has_the_most_frequent_unknown_labels(tmp_path: Path) -> None:
    rows = [*some(10, "ham"), *[("x", f"odd {number}") for number in range(50)], *some(3, "frequent")]
    told = surveyed(one_file(tmp_path, rows, labels=("ham",))).skipped.to_json()["unknown_labels"]
    assert (told["rows"], len(told["labels"]), told["labels"][0]["label"]) == (53, 20, "frequent")


def test_a_column_with_too_many_labels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.workloads.text_classification.data.sources.first_pass._MOST_LABELS", 10)
    told = refused(one_file(tmp_path, [(f"text {number}", f"label {number}") for number in range(20)]))
    assert "mails.tsv:12: more than 10 different labels up to here; does column 'label'" in told
