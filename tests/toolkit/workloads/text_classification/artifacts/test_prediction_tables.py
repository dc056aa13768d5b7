from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.system.output.csv_texts import unquoted
from tests.toolkit.workloads.text_classification.artifacts.made import FOLDED, predictions
from toolkit.workloads.text_classification.artifacts.evaluation import (
    write_predictions,
    write_testset_predictions,
)


def texts(rows: np.ndarray) -> list[str]:
    return [f"text {row}" for row in rows]


def read(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def test_the_first_two_columns_of_the_csv_are_codes(tmp_path: Path) -> None:
    path = tmp_path / "mails_testset_predictions.csv"
    write_testset_predictions(path, FOLDED, texts)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == (
        "prediction,true_label,text_id,sample,fragments,predicted_class,true_class,score,P(ham),P(spam),text"
    )
    assert lines[1] == "0,1,4,100,2,ham,spam,0.6,0.6,0.4,text 0"
    assert [line.split(",")[:2] for line in lines[2:]] == [["1", "1"], ["0", "0"], ["0", "1"], ["0", "1"]]


def test_the_tsv_has_pytexts_columns_in_the_order_of_the_split(tmp_path: Path) -> None:
    path = tmp_path / "test_predictions.tsv"
    write_predictions(path, FOLDED, texts)
    assert path.read_text(encoding="utf-8").splitlines()[0] == "prediction\ttarget\tscore\trow_index\ttext"
    rows = read(path, "\t")
    assert [row["row_index"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert (rows[1]["prediction"], rows[1]["target"], rows[1]["text"]) == ("spam", "spam", "text 1")
    assert json.loads(rows[0]["score"]) == pytest.approx([np.log(0.6), np.log(0.4)], abs=1e-5)


def test_texts_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    asked: list[int] = []

    def remembered(rows: np.ndarray) -> list[str]:
        asked.append(len(rows))
        return texts(rows)

    many = predictions([[0.5, 0.5]] * 2000, [0] * 2000)
    write_predictions(tmp_path / "out.tsv", many, remembered)
    assert sum(asked) == 2000
    assert max(asked) <= 512
    assert len(read(tmp_path / "out.tsv", "\t")) == 2000


def test_a_table_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def fails(rows: np.ndarray) -> list[str]:
        raise OSError("the set is gone")

    with pytest.raises(OSError, match="the set is gone"):
        write_testset_predictions(tmp_path / "out.csv", FOLDED, fails)
    assert list(tmp_path.iterdir()) == []


def test_without_predictions_the_csv_has_only_a_header(tmp_path: Path) -> None:
    write_testset_predictions(tmp_path / "out.csv", predictions([], []), texts)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1


anything = st.text(st.characters(codec="utf-8"))


@given(text=anything, label=anything)
def test_any_text_and_label_are_read_back(text: str, label: str) -> None:
    """Except that line ends become line feeds, and cells like formulas begin with a quote."""
    made = predictions([[0.25, 0.75]], [1], labels=("other", label))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.csv")
        write_testset_predictions(path, made, lambda rows: [text])
        (row,) = read(path)
    assert (unquoted(row["text"]), unquoted(row["true_class"])) == tuple(
        given.replace("\r\n", "\n").replace("\r", "\n") for given in (text, label)
    )


@given(label=anything)
def test_any_label_is_read_back_from_the_tsv(label: str) -> None:
    """Except that line ends become line feeds."""
    made = predictions([[0.25, 0.75]], [1], labels=("other", label))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.tsv")
        write_predictions(path, made, texts)
        (row,) = read(path, "\t")
    assert row["target"] == label.replace("\r\n", "\n").replace("\r", "\n")


@given(text=anything)
def test_a_row_of_the_tsv_is_a_line_for_any_text(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.tsv")
        write_predictions(path, predictions([[0.25, 0.75]], [1]), lambda rows: [text])
        raw = path.read_bytes()
    assert raw.count(b"\n") == 2
    assert not raw.count(b"\r")
