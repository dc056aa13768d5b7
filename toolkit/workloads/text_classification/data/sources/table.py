"""Reading delimited files row by row, and saying exactly what is wrong with one.

Blank lines are left out. A byte-order mark is dropped, line ends may be LF or CRLF.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO

from toolkit.errors import DataError
from toolkit.nlp.charset import check_encoding, lines, undecodable
from toolkit.workloads.text_classification.config import TextTable

#: csv refuses fields beyond 128 Ki characters; a whole book still fits into this one.
_FIELD_LIMIT = 1 << 30
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_NAMES_SHOWN = 8
_CHARACTERS_SHOWN = 60


class Row(NamedTuple):
    """One sample of a table: the line that it begins on (the header is line 1), its text, its label."""

    line: int
    text: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a file is cut into fields."""

    delimiter: str
    quoted: bool

    @classmethod
    def of(cls, path: Path, data: TextTable) -> Format:
        """What the config says, or else the file's suffix. Raises DataError where neither does."""
        delimiter = data.delimiter if data.delimiter is not None else _DELIMITERS.get(path.suffix.lower())
        if delimiter is None:
            raise DataError(
                f"{path}: the suffix {path.suffix!r} does not tell what separates the fields; "
                'set data.delimiter, for example to "," or "\\t"'
            )
        quoted = data.quoted if data.quoted is not None else delimiter != "\t"
        return cls(delimiter=delimiter, quoted=quoted)


def read_rows(path: Path, data: TextTable) -> Iterator[Row]:
    """Yield the rows of a file as the config describes it; holds one row at a time.

    Raises DataError, which names file and line: the file is missing, empty or unreadable, a column is
    missing, a row has another number of fields. Texts and labels are not looked at.
    """
    form = Format.of(path, data)
    fields = _fields(path, form, data)
    header, place = _header(path, fields, data)
    text_at = _column(place, header, data.text_column, "data.text_column")
    label_at = _column(place, header, data.label_column, "data.label_column")
    line = 0
    for line, row in fields:
        if line == 1 and row == header:
            # Only where data.columns is set: else the header is gone from the fields.
            raise DataError(f"{path}:1: the line names the columns itself, so leave data.columns out")
        if len(row) != len(header):
            _ragged(path, line, row, header, form.quoted, data.columns is not None)
        yield Row(line, row[text_at], row[label_at])
    if line:
        return
    if data.columns is not None:
        raise DataError(f"{path} is empty; expected one row per sample")
    raise DataError(f"{path} has a header but no rows; expected one row per sample below it")


def check_regular(path: Path) -> None:
    """Raise DataError for a pipe or a device: the second reading would find nothing, or wait forever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path} is a pipe or a device, expected a file: it is read more than once")


def open_problem(path: Path, error: OSError) -> DataError:
    """Say why a data file cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file. {_neighbours(path)}")
    if isinstance(error, IsADirectoryError):
        return DataError(f"{path} is a folder, expected a file; in it: {shown(_listing(path)) or 'nothing'}")
    if isinstance(error, PermissionError):
        return DataError(f"{path}: you may not read it (permission denied); ask its owner, or chmod +r")
    return DataError(f"{path}: cannot be read: {error.strerror or error}")


def _fields(path: Path, form: Format, data: TextTable) -> Iterator[tuple[int, list[str]]]:
    """Yield first line and fields of every row that is not blank."""
    check_encoding(data.encoding)
    # Quoted fields keep their own line ends; elsewhere a lone CR is a character like any other.
    newline = "" if form.quoted else "\n"
    try:
        check_regular(path)
        with open(path, encoding=data.encoding, newline=newline) as stream:
            cut = _quoted if form.quoted else _plain
            yield from cut(path, stream, form.delimiter)
    except OSError as error:
        raise open_problem(path, error) from error
    except UnicodeError:
        raise undecodable(path, data.encoding) from None


def _plain(path: Path, stream: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines(path, stream), start=1):
        if text := line.rstrip("\r\n"):
            yield number, text.split(delimiter)


def _quoted(path: Path, stream: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(_FIELD_LIMIT)
    reader = csv.reader(lines(path, stream), delimiter=delimiter, strict=True)
    first = 1
    try:
        for row in reader:
            if row:
                yield first, row
            first = reader.line_num + 1
    except csv.Error as error:
        # csv's own words for a field that swallows the rest of the file.
        open_end = "unexpected end" in str(error) or "field larger" in str(error)
        found = "a quoted field is never closed" if open_end else "text follows a closing quote"
        raise DataError(
            f"{path}:{first}: in the row that begins here, {found}. Write quotes inside a quoted field twice "
            '(""), or set data.quoted: false if quotes mean nothing in this file'
        ) from error


def _header(path: Path, fields: Iterator[tuple[int, list[str]]], data: TextTable) -> tuple[list[str], str]:
    """Return the names of the columns, and the place that they are from, for messages."""
    if data.columns is not None:
        return list(data.columns), "data.columns"
    line, header = next(fields, (0, []))
    if not header:
        raise DataError(
            f"{path} is empty; expected a line that names the columns, then one row per sample "
            "(data.columns names them for a file without such a line)"
        )
    return header, f"{path}:{line}"


def _column(place: str, header: list[str], name: str, key: str) -> int:
    """Return the position of a column. Raises DataError unless exactly one has that name."""
    if header.count(name) == 1:
        return header.index(name)
    columns = shown(header)
    if name in header:
        raise DataError(f"{place}: {header.count(name)} columns are named {name!r}; found: {columns}")
    near = get_close_matches(name, header, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    alone = "Is data.delimiter right? " if len(header) == 1 else ""
    raise DataError(
        f"{place}: no column {name!r}, found: {columns}. {alone}Set {key} to a column's name"
        + (f" ({hint.rstrip()})" if hint else "")
        + "; if the file has no line that names its columns, name them in data.columns"
    )


def _ragged(path: Path, line: int, row: list[str], header: list[str], quoted: bool, named: bool) -> NoReturn:
    cure = (
        "Put quotes around a field that holds the delimiter or a line end"
        if quoted
        else "A text must not hold the delimiter or a line end, unless fields are quoted (data.quoted: true)"
    )
    expected = f"{len(header)} as in {'data.columns' if named else 'the header'} ({shown(header)})"
    raise DataError(f"{path}:{line}: {len(row)} fields, expected {expected}. {cure}")


def _neighbours(path: Path) -> str:
    """Suggest what is there instead of a missing file."""
    folder = path.absolute().parent
    if not folder.is_dir():
        existing = next(parent for parent in folder.parents if parent.is_dir())
        return f"Its folder does not exist either, only {existing}"
    names = _listing(folder)
    near = get_close_matches(path.name, names, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if folder == folder.parent:
        return "Paths are relative to the folder where the command is given, unless they begin with /"
    return f"In {folder} there is: {shown(names)}" if names else f"{folder} is empty"


def _listing(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def short(text: str) -> str:
    return text if len(text) <= _CHARACTERS_SHOWN else text[:_CHARACTERS_SHOWN] + "…"


def shown(names: Sequence[str]) -> str:
    """The first few names, separated by commas."""
    shown = ", ".join(short(name) for name in names[:_NAMES_SHOWN])
    return shown + (f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else "")
