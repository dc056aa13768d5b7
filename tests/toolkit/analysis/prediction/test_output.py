"""Predictions are written as they are, or with a column for each of their values."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any

import pytest

from toolkit.analysis.prediction.output import writer
from toolkit.errors import UserError


def written(form: str, *parts: list[Any]) -> str:
    stream = StringIO()
    write = writer(stream, form)
    for part in parts:
        write(part)
    return stream.getvalue()


def test_json_lines_hold_values_as_they_are_but_null_for_nan_and_infinity() -> None:
    found = written("jsonl", [1, [0.5, 2]], [{"label": "gut — größer"}])
    assert found == '1\n[0.5, 2]\n{"label": "gut — größer"}\n'
    found = written("jsonl", [{"score": [float("nan"), 0.5]}, float("inf")])
    assert found == '{"score": [null, 0.5]}\nnull\n'


def test_a_table_has_one_header_and_a_column_for_each_value() -> None:
    first, second = ({"label": label, "probabilities": {"a": 0.25, "b": 0.75}} for label in "ab")
    text = written("csv", [first], [second])
    assert text == "label,probabilities.a,probabilities.b\na,0.25,0.75\nb,0.25,0.75\n"


def test_a_table_without_rows_has_a_header_of_the_known_columns() -> None:
    stream = StringIO()
    write = writer(stream, "csv", ("label", "score.a"))
    assert not stream.getvalue(), "an error may come before the first row"
    write([])
    assert stream.getvalue() == "label,score.a\n"
    write([{"label": "a", "score": {"a": 1}}])
    assert stream.getvalue() == "label,score.a\na,1\n"


def test_values_without_names_are_called_predictions() -> None:
    assert written("csv", [3, 4]) == "prediction\n3\n4\n"
    assert written("csv", [[3, 4]]) == "prediction.0,prediction.1\n3,4\n"


def test_labels_are_escaped_so_that_no_spreadsheet_runs_them_as_formulas() -> None:
    text = written("csv", [{"label": '=1+1, "a"\r\nb'}, {"label": "-1"}])
    assert [*csv.reader(StringIO(text))] == [["label"], ['\'=1+1, "a"\nb'], ["-1"]]


def test_predictions_of_different_lengths_are_refused_as_a_table() -> None:
    with pytest.raises(UserError, match="--format jsonl"):
        written("csv", [[1, 2], [3]])


def test_no_predictions_give_an_empty_file() -> None:
    assert written("csv") == written("jsonl") == written("csv", []) == ""
