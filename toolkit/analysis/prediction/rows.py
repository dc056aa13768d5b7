"""Rows of tables, of JSON lines and of plain lines. One row is held at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from toolkit.analysis.prediction.formats import LINES, TABLES
from toolkit.analysis.prediction.predictor import RowFormat
from toolkit.analysis.prediction.source import LONGEST, TextLines
from toolkit.data.sources.delimited import fields_of
from toolkit.errors import DataError, UserError


class Row(NamedTuple):
    """A row and its first line. `value`: the texts by column in a table, else the value of the line."""

    line: int
    value: Any


def rows_of(lines: TextLines, read_as: str, form: RowFormat) -> Iterator[Row]:
    """Yield the rows of an input. Blank lines of tables and of JSON lines are skipped.

    read_as   one of toolkit.analysis.prediction.formats.INPUTS
    Raises DataError, which names the line, and UserError if the task does not take tables or plain lines.
    """
    if read_as in TABLES:
        _check_taken(lines.name, "a row of a table", form.takes_tables, form)
        delimiter = form.delimiter or ("\t" if read_as == "tsv" else ",")
        quoted = delimiter != "\t" if form.quoted is None else form.quoted
        return _table(lines, delimiter, quoted, form)
    if read_as == LINES:
        _check_taken(lines.name, "a plain line of text", form.takes_lines, form)
        return (Row(lines.number, line.removesuffix("\n").removesuffix("\r")) for line in lines)
    return _json(lines, form)


def _check_taken(name: str, what: str, is_taken: bool, form: RowFormat) -> None:
    if not is_taken:
        others = ".csv or .jsonl" if form.takes_tables else "JSON lines (.jsonl)"
        raise UserError(f"{name}: {what} is not a row of this task: give {others}")


def _json(lines: TextLines, form: RowFormat) -> Iterator[Row]:
    names = ("parse_float", "parse_int", "parse_constant") if form.keeps_numbers else ()
    kept: dict[str, Any] = dict.fromkeys(names, str)
    decode = json.JSONDecoder(**kept).decode
    for line in lines:
        if not line.isspace():
            yield Row(lines.number, _decoded(line, decode, f"{lines.name}:{lines.number}"))


def _decoded(line: str, decode: Any, place: str) -> Any:
    try:
        return decode(line)
    except json.JSONDecodeError as error:
        problem = f"found no JSON from character {error.pos + 1} on"
    except (RecursionError, ValueError):
        problem = "found a value that is nested too deep, or a number of too many digits"
    raise DataError(f"{place}: {problem}, expected one JSON value in each line")


def _table(lines: TextLines, delimiter: str, quoted: bool, form: RowFormat) -> Iterator[Row]:
    found = fields_of(lines, delimiter, quoted=quoted, name=lines.name, longest=LONGEST)
    first, header = (0, list(form.columns)) if form.columns else next(found, (0, []))
    # Columns without a name, such as that of an index, are no fields of a row.
    named = [each for each in header if (each if form.needed is None else each in form.needed)]
    if len(set(named)) < len(named):
        raise DataError(f"{lines.name}:{first}: two columns have the same name: {', '.join(header)}")
    for number, fields in found:
        if fields == header and number == 1:
            # A header, although its names are already known.
            continue
        if len(fields) != len(header):
            raise DataError(
                f"{lines.name}:{number}: found {len(fields)} fields, expected {len(header)}: "
                f"{', '.join(header)}. {_advice(header, delimiter)}"
            )
        yield Row(number, dict(zip(header, fields, strict=True)))


def _advice(header: list[str], delimiter: str) -> str:
    """What to do about a row with another number of fields than the header."""
    others = [each for each in ";|\t," if each in header[0]]
    if len(header) == 1 and others:
        return f"Columns seem divided by {others[0]!r}, but this run reads {delimiter!r}: convert the table"
    return "Put quotes around a field that holds the delimiter or a line end"
