"""Rows of tables, of JSON lines and of plain lines, each with the line that it begins on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from toolkit.analysis.prediction.predictor import RowFormat
from toolkit.analysis.prediction.rows import Row, rows_of
from toolkit.analysis.prediction.source import TextLines
from toolkit.errors import DataError, UserError


def rows(text: str, read_as: str, **form: Any) -> Iterator[Row]:
    waiting = [text.encode()]
    lines = TextLines("rows", "utf-8", lambda: waiting.pop() if waiting else b"")
    return rows_of(lines, read_as, RowFormat(**form))


def read(text: str, read_as: str, **form: Any) -> list[tuple[int, Any]]:
    return [(row.line, row.value) for row in rows(text, read_as, **form)]


def refused(text: str, read_as: str, **form: Any) -> str:
    with pytest.raises(UserError) as raised:
        read(text, read_as, **form)
    return str(raised.value)


def test_cells_of_a_table_may_hold_quotes_delimiters_and_line_ends() -> None:
    text = 'id,text\n1,"a ""b"", c\nd"\n\n2,\'e\n'
    assert read(text, "csv") == [(2, {"id": "1", "text": 'a "b", c\nd'}), (5, {"id": "2", "text": "'e"})]


def test_quoting_and_delimiter_follow_the_row_format() -> None:
    assert read('a\tb\n"x\ty"\n', "tsv") == [(2, {"a": '"x', "b": 'y"'})]
    assert read('a\tb\n"x\ty"\tz\n', "tsv", quoted=True) == [(2, {"a": "x\ty", "b": "z"})]
    assert read("a;b\nx;y\r\n", "csv", delimiter=";") == [(2, {"a": "x", "b": "y"})]


def test_columns_may_lack_names() -> None:
    assert read(",text,\n1,a,x\n", "csv")[0][1]["text"] == "a"


def test_columns_that_are_not_needed_may_have_equal_names() -> None:
    text = "id,id,text\n1,2,x\n"
    assert read(text, "csv", needed=("text",))[0][1]["text"] == "x"
    assert read("1,2,x\n", "csv", columns=("id", "id", "text"), needed=("text",))[0][1]["text"] == "x"
    assert "two columns have the same name" in refused(text, "csv")
    assert "two columns have the same name" in refused("text,text\n1,2\n", "csv", needed=("text",))


def test_a_header_is_optional_where_the_columns_are_known() -> None:
    expected = {"a": "x", "b": "y"}
    assert read("x,y\n", "csv", columns=("a", "b")) == [(1, expected)]
    assert read("a,b\nx,y\n", "csv", columns=("a", "b")) == [(2, expected)]


def test_a_line_of_json_may_be_any_value() -> None:
    text = '{"a": 1.0}\n\n[1, 2]\n"x"\n3'
    assert read(text, "jsonl") == [(1, {"a": 1.0}), (3, [1, 2]), (4, "x"), (5, 3)]
    assert read(text, "jsonl", keeps_numbers=True)[0] == (1, {"a": "1.0"})
    constants = "[NaN, Infinity, -Infinity]"
    assert read(constants, "jsonl", keeps_numbers=True) == [(1, ["NaN", "Infinity", "-Infinity"])]
    assert read("-Infinity", "jsonl") == [(1, -math.inf)]


def test_a_plain_line_is_a_row_even_if_it_is_empty() -> None:
    assert read("a\n\nb\r\n", "lines", takes_lines=True) == [(1, "a"), (2, ""), (3, "b")]
    assert "not a row of this task" in refused("a\n", "lines")


@pytest.mark.parametrize(
    "text, read_as, said",
    [
        ('{"a": 1}\n{"a"\n', "jsonl", "rows:2: found no JSON from character 6 on"),
        ("[" * 100_000 + "\n", "jsonl", "rows:1: found a value that is nested too deep"),
        ("a,b\n1,2\n3\n", "csv", "rows:3: found 1 fields, expected 2: a, b"),
        ("a;b\n1,2;3\n", "csv", "rows:2: found 2 fields, expected 1: a;b. Columns seem divided by ';'"),
        ("a,a\n1,2\n", "csv", "rows:1: two columns have the same name"),
        ("a,b\r1,2\r", "csv", "rows:1: in the row that begins here, a carriage return stands alone"),
        ('a,b\n1,2\n"3,4\n', "csv", "rows:3: in the row that begins here, a quoted field is never closed"),
    ],
)
def test_a_broken_row_is_reported_with_its_line(text: str, read_as: str, said: str) -> None:
    assert said in refused(text, read_as)


@pytest.mark.parametrize("read_as", ["csv", "tsv", "lines"])
def test_a_task_may_accept_json_lines_only(read_as: str) -> None:
    assert "give JSON lines" in refused("a\n1\n", read_as, takes_tables=False)


def test_an_empty_input_has_no_rows() -> None:
    assert [read("", kind, takes_lines=True) for kind in ("csv", "tsv", "jsonl", "lines")] == [[], [], [], []]


def test_rows_before_a_broken_row_are_returned() -> None:
    found = rows('1\n"\n', "jsonl")
    assert next(found).value == 1
    with pytest.raises(DataError):
        next(found)
