"""Read and write JSON lines. Faults name file, line and the type of the value."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from toolkit.errors import DataError
from toolkit.files import open_atomic

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the objects of a JSON-lines file (UTF-8); blank lines are skipped. Raises DataError.

    The first line may have a byte-order mark.
    """
    try:
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.removeprefix(BOM_UTF8) if number == 1 else line
                if text.strip():
                    yield Line(path, number, _parsed(path, number, text))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Write a line for each record, and return their number. The file is never partial."""
    count = 0
    with open_atomic(path) as stream:
        for record in records:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            count += 1
    return count


def is_a(value: Any, *kinds: type) -> bool:
    """Whether a JSON value is of one of the types; true and false are not numbers."""
    return type(value) in kinds


def kind_of(value: Any) -> str:
    """The type of a JSON value, for messages."""
    return _KINDS.get(type(value), "a number")


class Line:
    """An object of a file; its methods check keys and types of values."""

    __slots__ = ("number", "path", "record")

    def __init__(self, path: Path, number: int, record: Any) -> None:
        self.path, self.number, self.record = path, number, record
        if not isinstance(record, dict):
            self.refuse(f"found {kind_of(record)}, expected an object")

    def refuse(self, problem: str) -> NoReturn:
        """Raise DataError with file and line."""
        raise DataError(f"{self.path}:{self.number}: {problem}")

    def value(self, key: str, kind: type, expected: str) -> Any:
        """Return the value of a key. Raises DataError if it is missing or of another type."""
        if key not in self.record:
            self.refuse(f"{key} is missing, expected {expected}")
        value = self.record[key]
        if not is_a(value, kind):
            self.refuse(f"{key} is {kind_of(value)}, expected {expected}")
        return value

    def optional(self, key: str, kind: type, expected: str, default: Any) -> Any:
        """Return the value of a key, or the default if it is missing or null."""
        return default if self.record.get(key) is None else self.value(key, kind, expected)

    def items(self, key: str, kind: type, expected: str) -> list[Any]:
        """Return a list. Raises DataError if an entry is of another type."""
        values: list[Any] = self.value(key, list, f"a list of {expected}")
        for place, value in enumerate(values):
            if not is_a(value, kind):
                self.refuse(f"{key}[{place}] is {kind_of(value)}, expected a list of {expected}")
        return values


def _parsed(path: Path, number: int, line: bytes) -> Any:
    try:
        value = json.loads(line.rstrip(b"\r\n").decode("utf-8"))
        if b"\\ud" in line.lower():
            # An escaped half of a character, as in cut texts. A file cannot store it.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}:{number}: holds half a character ({error.object[error.start]!a}); remove it"
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}:{number}: not JSON at character {error.colno}: {error.msg}; expected one object a line"
        ) from error
    except (ValueError, RecursionError) as error:
        # A number with thousands of digits, or deeply nested lists.
        raise DataError(f"{path}:{number}: cannot be read: {error}") from error
