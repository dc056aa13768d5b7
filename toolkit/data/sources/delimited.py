"""The fields of delimited text, row by row. Blank lines are left out."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from toolkit.errors import DataError


def fields_of(
    lines: Iterable[str], delimiter: str, *, quoted: bool, name: object, longest: int, hint: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line of every row, counted from 1, and its fields. One row is held at a time.

    quoted    whether fields may be quoted
    name      name of the text, for messages
    longest   the most characters of a quoted field
    hint      further advice about a wrong quote
    Raises DataError, which names the line, for a wrong quote.
    """
    if quoted:
        yield from _quoted(lines, delimiter, name, longest, hint)
        return
    for number, line in enumerate(lines, start=1):
        if text := line.rstrip("\r\n"):
            yield number, text.split(delimiter)


def _quoted(
    lines: Iterable[str], delimiter: str, name: object, longest: int, hint: str
) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(longest)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    first = 1
    try:
        for row in reader:
            if row:
                yield first, row
            first = reader.line_num + 1
    except csv.Error as error:
        advice = f'Write quotes inside a quoted field twice (""){hint}'
        # csv's own words: the first two for a field that swallows the rest of the file.
        if "unexpected end" in str(error) or "field larger" in str(error):
            found = "a quoted field is never closed"
        elif "new-line character" in str(error):
            found = "a carriage return stands alone outside of quotes"
            advice = "End each line with a line feed, or put quotes around that field"
        else:
            found = "text follows a closing quote"
        raise DataError(f"{name}:{first}: in the row that begins here, {found}. {advice}") from error
