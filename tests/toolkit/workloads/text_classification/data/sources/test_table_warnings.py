"""Unusual properties of a table are reported when it is prepared, and before that if it is small."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.workloads.text_classification.data.sources.test_first_pass import (
    Rows,
    files,
    one_file,
    some,
    surveyed,
)
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import checks
from toolkit.workloads.text_classification.data.checks import table_violations, table_warnings
from toolkit.workloads.text_classification.data.prepared import prepare
from toolkit.workloads.text_classification.data.sources import text_hashes
from toolkit.workloads.text_classification.data.sources.labels import describe_skipped
from toolkit.workloads.text_classification.data.sources.table_warnings import alike, describe_notable

LABELS = st.text(alphabet="aB \t\xa0ß", max_size=4)


def texts(name: str, count: int, label: str) -> Rows:
    return [(f"{name} {number}", label) for number in range(count)]


def told(data: TextTable) -> list[str]:
    found = surveyed(data)
    return [*describe_skipped(found.skipped.to_json()), *describe_notable(found.notable)]


def before(data: TextTable) -> list[str]:
    """The warnings before the table is prepared."""
    return [each.problem for each in table_warnings(data)]


@given(st.lists(LABELS, unique=True))
def test_labels_are_alike_if_they_are_equal_without_case_and_blanks(labels: list[str]) -> None:
    def plain(label: str) -> str:
        return "".join(label.casefold().split())

    groups = alike(labels)
    assert all(len(group) > 1 and len({plain(label) for label in group}) == 1 for group in groups)
    alone = set(labels) - {label for group in groups for label in group}
    assert len({plain(label) for label in alone}) == len(alone)


@pytest.mark.parametrize(
    "counts, named, unnamed",
    [
        ({"ham": 40, "Ham": 40, "ham ": 40, "no": 40}, ["ham", "Ham", "ham "], ["no"]),
        ({"1": 30, "1.0": 30, "2": 30}, ["1", "1.0"], ["2"]),
        ({"ham": 30}, ["ham"], []),
        ({"ham": 30, "NaN": 30}, ["NaN"], []),
    ],
    ids=["case and blanks", "equal numbers", "a single label", "a missing value"],
)
def test_doubtful_labels_are_reported_in_one_line(
    tmp_path: Path, counts: dict[str, int], named: list[str], unnamed: list[str]
) -> None:
    rows = [row for place, label in enumerate(counts) for row in texts(f"t{place}", counts[label], label)]
    data = one_file(tmp_path, rows)
    (line,) = told(data)
    assert all(repr(label) in line for label in named)
    assert not any(repr(label) in line for label in unnamed)
    assert before(data) == [line]


def test_a_label_without_texts_in_a_split_is_reported(tmp_path: Path) -> None:
    data = files(tmp_path, [*texts("a", 9, "ham"), *texts("b", 9, "spam")], texts("c", 5, "ham"))
    (line,) = told(data)
    assert "validation" in line
    assert "spam" in line
    assert before(data) == [line]


def test_a_text_in_two_splits_is_reported_with_both_lines(tmp_path: Path) -> None:
    both = [("the same", "ham"), ("alike", "spam"), ("the same", "ham")]
    train = [*texts("a", 3, "ham"), *both, *texts("b", 3, "spam")]
    data = files(tmp_path, train, [*texts("c", 2, "ham"), *texts("d", 2, "spam"), *reversed(both)])
    (line,) = told(data)
    assert line.startswith("2 texts")
    assert f"{data.train}:5" in line
    assert f"{data.validation}:6" in line
    assert before(data) == [line]


def test_skipped_rows_are_not_compared(tmp_path: Path) -> None:
    rows = [("here", "other"), ("here", "ham"), *texts("a", 9, "ham"), ("c", "spam")]
    held = [("here", "ham"), *texts("b", 3, "ham"), ("a 3", "other"), ("d", "spam")]
    data = files(tmp_path, rows, held, labels=("ham", "spam"))
    left_out, line = told(data)
    assert left_out.startswith("left out 2 rows ")
    assert line.startswith("1 text ")
    assert f"{data.train}:3" in line
    assert before(data) == [left_out, line]


def test_rows_that_training_cannot_learn_are_reported_and_not_compared(tmp_path: Path) -> None:
    """Whether their label is only in another file, only in another split, or they have none."""
    both = [("here", "ham"), ("here", "spma")]
    of_files = files(tmp_path, [*both[:1], *texts("a", 3, "ham")], [*both, ("x", ""), *texts("b", 2, "ham")])
    left_out, *_, shared = told(of_files)
    assert left_out == f"left out 1 row with unknown labels: 'spma' 1; one is {tmp_path}/dev.tsv:3"
    assert shared.startswith("1 text is in train and in validation")
    rare = [(f"rare {place}", f"label {place}") for place in range(20)]
    of_splits = one_file(tmp_path, [*texts("a", 40, "ham"), *rare, *texts("b", 40, "ham")])
    assert told(of_splits)[0].startswith("left out ")
    for data in (of_files, of_splits):
        assert before(data) == told(data)


def test_texts_of_one_file_are_compared_between_its_splits(tmp_path: Path) -> None:
    """Every text occurs twice, so some texts are in two splits."""
    rows = texts("a", 50, "ham") + texts("a", 50, "ham") + texts("b", 50, "spam")
    data = one_file(tmp_path, rows)
    assert any("train" in line and "validation" in line for line in told(data))
    assert before(data) == told(data)
    unique = texts("a", 100, "ham") + texts("b", 50, "spam")
    assert told(one_file(tmp_path, unique)) == []


@pytest.mark.parametrize("stratify", [False, True])
def test_a_label_without_texts_in_a_split_of_one_file_is_reported(tmp_path: Path, stratify: bool) -> None:
    rows = [*texts("a", 60, "ham"), *texts("b", 1, "spam"), *texts("c", 60, "ham"), *texts("d", 2, "rare")]
    data = one_file(tmp_path, rows, stratify=stratify)
    assert any("rare" in line or "spam" in line for line in told(data))
    assert before(data) == told(data)


def test_shared_texts_are_not_reported_if_fragments_are_split(tmp_path: Path) -> None:
    rows = texts("a", 50, "ham") + texts("a", 50, "ham") + texts("b", 50, "spam")
    assert told(one_file(tmp_path, rows, split_unit="fragment")) == []


def test_only_the_first_texts_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_hashes, "_MOST", 4)
    rows, held = [("x", "other"), *texts("a", 3, "ham")], texts("a", 3, "ham")
    data = files(tmp_path, rows, held, labels=("ham",))
    assert not any("in two splits" in line or "texts are" in line for line in told(data))
    monkeypatch.setattr(text_hashes, "_MOST", 5)
    assert told(data)[-1].startswith("1 text ")


@pytest.mark.parametrize("is_large", [False, True])
def test_warnings_are_in_the_summary_and_are_reported_for_large_prepared_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    options: dict[str, Any] = {"prepared_dir": str(tmp_path / "prepared")}
    data = files(tmp_path, [*some(9, "ham"), *some(9, "Ham")], some(5, "ham"), **options)
    lines = told(data)
    if is_large:
        monkeypatch.setattr(checks, "_FEW_BYTES", 10)
        (line,) = before(data)
        assert "too large" in line
    prepared = prepare(data)
    assert prepared.summary().splitlines()[1:] == lines
    assert prepare(data).summary().splitlines()[1:] == lines
    assert len(lines) > 1
    assert before(data) == lines


@pytest.mark.parametrize("rows", [20, 2000])
def test_the_size_of_a_compressed_table_is_its_unpacked_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(checks, "_FEW_BYTES", 1000)
    path = tmp_path / "mails.csv.gz"
    path.write_bytes(gzip.compress(b"text,label\n" + b"the same,ham\n" * rows))
    assert path.stat().st_size < 1000
    line, *_ = before(TextTable(path=str(path), prepared_dir=str(tmp_path)))
    assert ("too large" if rows == 2000 else "one label, 'ham'") in line


def refused_early(data: TextTable) -> str:
    """The error before the table is prepared, after making sure that preparing it ends with the same."""
    (found,) = table_violations(data)
    with pytest.raises(DataError) as caught:
        surveyed(data)
    assert found.problem == str(caught.value)
    return found.problem


def test_a_small_table_is_read_again_only_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = files(tmp_path, texts("a", 4, "ham"), texts("b", 4, "ham"))
    told = before(data)
    with monkeypatch.context() as context:
        context.setattr(checks, "_survey_of", None)
        assert before(data) == told
    files(tmp_path, texts("a", 4, "ham"), texts("a", 4, "ham"))
    assert len(before(data)) == len(told) + 1


def test_a_label_that_training_lacks_is_refused_before_the_table_is_prepared(tmp_path: Path) -> None:
    rare = [(f"rare {place}", f"label {place}") for place in range(20)]
    data = one_file(tmp_path, [*texts("a", 40, "ham"), *rare], unknown_labels="refuse")
    assert "data.stratify" in refused_early(data)
    data = files(tmp_path, texts("a", 4, "ham"), [("b", "ham"), ("c", "spam")], unknown_labels="refuse")
    assert "dev.tsv:3: label 'spam' does not occur in the training split" in refused_early(data)
    assert "data.stratify" not in refused_early(data)


def test_a_file_without_a_label_of_training_is_refused_before_it_is_prepared(tmp_path: Path) -> None:
    data = files(tmp_path, texts("a", 4, "ham"), texts("b", 4, "Ham"))
    assert "dev.tsv" in refused_early(data)


@pytest.mark.parametrize("rows, split", [(1, "validation"), (5, "test")])
def test_a_table_too_small_for_its_splits_is_refused_before_it_is_prepared(
    tmp_path: Path, rows: int, split: str
) -> None:
    """A run needs training and validation, so only a test set may be left out."""
    problem = refused_early(one_file(tmp_path, texts("a", rows, "ham")))
    assert f"none is left for '{split}'" in problem
    assert ("to 0" in problem) == (split == "test")


def test_an_unreadable_table_has_no_warnings(tmp_path: Path) -> None:
    data = files(tmp_path, [("only one field", "")], some(1, "ham"))
    Path(str(data.validation)).unlink()
    assert before(data) == []
