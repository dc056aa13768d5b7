"""Read delimited files row by row, and report their errors.

Blank lines are skipped. A byte-order mark is dropped. Line ends may be LF or CRLF.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
    text_at, label_at = column_places(place, header, data)
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
    # Quoted fields keep their line ends. In unquoted files, a lone CR is an ordinary character.
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


def column_places(place: str, header: list[str], data: TextTable) -> tuple[int, int]:
    """Return the positions of text and label. Raises DataError unless exactly one column has each name.

    place  where the header is given, for messages
    """
    columns = shown(header)
    if absent := absent_names(header, data):
        # A single column usually means a wrong delimiter, so its name is no hint.
        alone, hint = ("Is data.delimiter right? ", "") if len(header) == 1 else ("", absent.hint)
        raise DataError(
            f"{place}: no column {absent.names}, found: {columns}. {alone}Set {absent.keys} to a column's "
            f"name{hint}; if the file has no line that names its columns, name them in data.columns"
        )
    for name in (data.text_column, data.label_column):
        if header.count(name) > 1:
            raise DataError(f"{place}: {header.count(name)} columns are named {name!r}; found: {columns}")
    return header.index(data.text_column), header.index(data.label_column)


class Absent(NamedTuple):
    """Names that a table lacks, the keys that set them, and similar names in brackets, for messages."""

    names: str
    keys: str
    hint: str


def absent_names(present: Collection[str], data: TextTable) -> Absent | None:
    """Return which of the text and label columns are missing; None if both are present."""
    wanted = {"data.text_column": data.text_column, "data.label_column": data.label_column}
    absent = {key: name for key, name in wanted.items() if name not in present}
    if not absent:
        return None
    hint = " ".join(filter(None, (similar(name, present) for name in absent.values())))
    names, keys = " and ".join(map(repr, absent.values())), " and ".join(absent)
    return Absent(names, keys, f" ({hint})" if hint else "")


def _ragged(path: Path, line: int, row: list[str], header: list[str], quoted: bool, named: bool) -> NoReturn:
    cure = (
        "Put quotes around a field that holds the delimiter or a line end"
        if quoted
        else "A text must not hold the delimiter or a line end, unless fields are quoted (data.quoted: true)"
    )
    expected = f"{len(header)} as in {'data.columns' if named else 'the header'} ({shown(header)})"
    raise DataError(f"{path}:{line}: {len(row)} fields, expected {expected}. {cure}")
