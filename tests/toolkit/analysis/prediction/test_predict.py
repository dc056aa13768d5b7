"""Rows are predicted in their order, a chunk at a time. Only one chunk is held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import pytest

from toolkit.analysis.prediction.predict import Answering
from toolkit.analysis.prediction.predictor import RowFormat
from toolkit.analysis.prediction.request import input_format, output_format
from toolkit.analysis.prediction.rows import Row
from toolkit.errors import UserError


@dataclass
class Doubling:
    """A predictor of numbers; it notes how many samples it is handed."""

    format = RowFormat()
    batches_at_once = 1
    handed: list[int] = field(default_factory=list)

    def sample(self, row):
        return row

    def predict(self, samples):
        self.handed.append(len(samples))
        if 13 in samples:
            raise UserError("13 is unlucky")
        return [2 * sample for sample in samples]


def rows(count: int, read: list[int] | None = None) -> Iterator[Row]:
    """Numbers from 0, with a count of how many were read."""
    for number in range(count):
        if read is not None:
            read[0] = number + 1
        yield Row(number + 1, number)


def answering(doubling: Doubling, at_once: int) -> Answering:
    return Answering(predictor=doubling, predict=doubling.predict, at_once=at_once)


def test_predictions_come_in_the_order_of_the_rows() -> None:
    doubling = Doubling()
    found = [*answering(doubling, 4).predictions(rows(10), "rows")]
    assert [*chain.from_iterable(found)] == [2 * number for number in range(10)]
    assert doubling.handed == [4, 4, 2]


def test_input_is_read_at_most_one_batch_ahead() -> None:
    doubling, read, written = Doubling(), [0], 0
    most = 0
    numbers = (row for row in rows(100_000, read) if row.value != 13)
    for part in answering(doubling, 64).predictions(numbers, "rows"):
        most = max(most, read[0] - written)
        written += len(part)
    assert written == 99_999
    assert most <= 65


def test_available_rows_are_predicted_without_waiting_for_a_full_batch() -> None:
    doubling = Doubling()
    waits = iter([True, False, False, True])
    found = answering(doubling, 99).predictions(rows(4), "rows", lambda: next(waits))
    assert [*found] == [[0, 2], [4], [6]]


def test_a_failing_batch_is_reported_with_its_lines() -> None:
    doubling = Doubling()
    with pytest.raises(UserError, match="rows, rows of lines 13 to 16: 13 is unlucky"):
        [*answering(doubling, 4).predictions(rows(99), "rows")]


def test_the_input_format_follows_the_file_suffix() -> None:
    names = (None, "a.csv", "a.tsv", "b.JSONL", "c.ndjson", "d.txt", "e.csv.gz")
    assert [input_format(name) for name in names] == ["jsonl", "csv", "tsv", "jsonl", "jsonl", "lines", "csv"]
    with pytest.raises(UserError, match="--input-format"):
        input_format("a.xlsx")


@pytest.mark.parametrize(
    "output, read_as, written",
    [
        (None, "csv", "csv"),
        (None, "tsv", "csv"),
        (None, "jsonl", "jsonl"),
        (None, "lines", "jsonl"),
        ("a.csv", "jsonl", "csv"),
        ("a.jsonl", "csv", "jsonl"),
        ("a.out", "csv", "csv"),
        ("a.txt", "csv", "csv"),
    ],
)
def test_the_output_format_follows_the_output_name_or_else_the_input(
    output: str | None, read_as: str, written: str
) -> None:
    assert output_format(output, read_as) == written


@pytest.mark.parametrize("output", [None, "a.out", "a.jsonl"])
def test_predictions_of_different_lengths_are_json_lines(output: str | None) -> None:
    assert output_format(output, "csv", varied=True) == "jsonl"
    assert output_format("a.csv", "csv", given="jsonl", varied=True) == "jsonl"


@pytest.mark.parametrize("output, given", [(None, "csv"), ("a.csv", None), ("a.jsonl", "csv")])
def test_a_table_that_is_asked_for_is_written(output: str | None, given: str | None) -> None:
    """Predictions that differ elsewhere may be equally long in this file."""
    assert output_format(output, "jsonl", given=given, varied=True) == "csv"


@pytest.mark.parametrize("output", ["a.xlsx", "a.PARQUET", "a.tsv", "a.csv.gz"])
def test_an_output_name_with_an_unsupported_suffix_is_refused(output: str) -> None:
    with pytest.raises(UserError, match="--format"):
        output_format(output, "csv")
