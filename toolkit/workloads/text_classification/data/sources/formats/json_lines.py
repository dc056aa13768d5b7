"""Read JSON lines: each row is an object, and its keys are the columns. Blank lines are skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.nlp.characters import no_character
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.charset import lines
from toolkit.workloads.text_classification.data.sources.formats.opening import opened
from toolkit.workloads.text_classification.data.sources.formats.table import Row, absent_names
from toolkit.workloads.text_classification.data.sources.formats.wording import shown

# Numbers stay texts, so labels such as 1.0 and 1e3 are the same as in a delimited file.
_decode = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str).decode


def read_json_lines(path: Path, data: TextTable) -> Iterator[Row]:
    """Yield the rows of a file, one at a time. null is an empty field.

    Raises DataError with file and line if the file is missing, empty or unreadable, or if a line is not an
    object, lacks a key, or has a value there that is neither a text nor a number.
    """
    is_empty = True
    with opened(path, data.encoding, "\n") as stream:
        for number, line in enumerate(lines(path, stream), start=1):
            # A line with only a byte-order mark is empty.
            if not line or line.isspace():
                continue
            is_empty = False
            try:
                text, label = _text_and_label(line, data)
            except DataError as error:
                raise DataError(f"{path}:{number}: {error}") from None
            yield Row(number, text, label)
    if is_empty:
        raise DataError(f"{path} is empty; expected one JSON object per line, a line for each sample")


def _text_and_label(line: str, data: TextTable) -> tuple[str, str]:
    """Read a line. Raises DataError without its place."""
    found = _object(line)
    text, label = _field(found, data.text_column, data), _field(found, data.label_column, data)
    # Only escapes can encode half a character, which text files and databases cannot store.
    if "\\u" in line and (odd := no_character(text + label)):
        raise DataError(f"{odd} is not a character of text; correct the line")
    return text, label


def _object(line: str) -> dict[str, Any]:
    try:
        found = _decode(line)
    except json.JSONDecodeError as error:
        problem = f"not JSON from character {error.pos + 1} on"
    except RecursionError:
        problem = "nested too deep"
    else:
        if isinstance(found, dict):
            return found
        problem = "not a JSON object"
    raise DataError(f'{problem}; expected a whole object in each line, such as {{"text": "…", "label": "…"}}')


def _field(found: dict[str, Any], name: str, data: TextTable) -> str:
    """The text of a column."""
    value = found.get(name)
    if isinstance(value, str):
        return value
    if name not in found and (absent := absent_names(found, data)):
        raise DataError(
            f"no key {absent.names}, found: {shown(list(found)) or 'none'}. "
            f"Set {absent.keys} to a key of every line{absent.hint}; a row without a value needs null"
        )
    if value is None:
        return ""
    kind = {bool: "true or false", dict: "an object", list: "a list"}[type(value)]
    raise DataError(f"{name!r} is {kind}, expected a text or a number")
