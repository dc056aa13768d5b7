"""Read delimited files row by row, and report their faults.

Blank lines are skipped. A byte-order mark is dropped. Line ends may be LF or CRLF.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from toolkit.data.sources.delimited import fields_of
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.charset import lines
from toolkit.workloads.text_classification.data.sources.formats.opening import opened
from toolkit.workloads.text_classification.data.sources.formats.wording import shown, similar

#: By default, csv refuses fields of more than 128 Ki characters. A whole book fits into this limit.
_FIELD_LIMIT = 1 << 30


class Row(NamedTuple):
    """One row of a table: its first line (the header is line 1), its text, its label."""

    line: int
    text: str
    label: str


def read_table(path: Path, delimiter: str, quoted: bool, data: TextTable) -> Iterator[Row]:
    """Yield the rows of a file, one at a time.

    quoted   whether fields may be quoted
    Raises DataError with file and line if the file is missing, empty or unreadable, if a column is missing,
    or if a row has another number of fields. Texts and labels are not checked.
    """
    fields = _fields(path, delimiter, quoted, data)
    header, place = _header(path, fields, data)
    text_at = column_place(place, header, data.text_column, "data.text_column")
    label_at = column_place(place, header, data.label_column, "data.label_column")
    line = 0
    for line, row in fields:
        if line == 1 and row == header:
            # Only with data.columns: otherwise _header has taken this line.
            raise DataError(f"{path}:1: the line names the columns itself, so leave data.columns out")
        if len(row) != len(header):
            _ragged(path, line, row, header, quoted, data.columns is not None)
        yield Row(line, row[text_at], row[label_at])
    if line:
        return
    if data.columns is not None:
        raise DataError(f"{path} is empty; expected one row per sample")
    raise DataError(f"{path} has a header but no rows; expected one row per sample below it")


def _fields(path: Path, delimiter: str, quoted: bool, data: TextTable) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the fields of every row that is not blank."""
    # Quoted fields keep their line ends. Without quotes, a lone CR is an ordinary character.
    with opened(path, data.encoding, "" if quoted else "\n") as stream:
        yield from fields_of(
            lines(path, stream),
            delimiter,
            quoted=quoted,
            name=path,
            longest=_FIELD_LIMIT,
            hint=", or set data.quoted: false if quotes mean nothing in this file",
        )


def _header(path: Path, fields: Iterator[tuple[int, list[str]]], data: TextTable) -> tuple[list[str], str]:
    """Return the names of the columns, and where they are given (for messages)."""
    if data.columns is not None:
        return list(data.columns), "data.columns"
    line, header = next(fields, (0, []))
    if not header:
        raise DataError(
            f"{path} is empty; expected a line that names the columns, then one row per sample "
            "(data.columns names them for a file without such a line)"
        )
    return header, f"{path}:{line}"


def column_place(place: str, header: list[str], name: str, key: str) -> int:
    """Return the position of a column. Raises DataError unless exactly one column has the name.

    place  where the header is given, for messages
    key    the key of the config with the column's name
    """
    if header.count(name) == 1:
        return header.index(name)
    columns = shown(header)
    if name in header:
        raise DataError(f"{place}: {header.count(name)} columns are named {name!r}; found: {columns}")
    hint = f" ({near})" if (near := similar(name, header)) else ""
    alone = "Is data.delimiter right? " if len(header) == 1 else ""
    raise DataError(
        f"{place}: no column {name!r}, found: {columns}. {alone}Set {key} to a column's name{hint}; if the "
        "file has no line that names its columns, name them in data.columns"
    )


def _ragged(path: Path, line: int, row: list[str], header: list[str], quoted: bool, named: bool) -> NoReturn:
    cure = (
        "Put quotes around a field that holds the delimiter or a line end"
        if quoted
        else "A text must not hold the delimiter or a line end, unless fields are quoted (data.quoted: true)"
    )
    expected = f"{len(header)} as in {'data.columns' if named else 'the header'} ({shown(header)})"
    raise DataError(f"{path}:{line}: {len(row)} fields, expected {expected}. {cure}")
