"""Read the documents and artifacts of a run as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from toolkit.config.composition.yaml_files import Unreadable, parse, read_text
from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.report.formats import clean

_SPLIT_ORDER = ("train", "validation", "test")

Value = TypeVar("Value")


def split_position(split: str) -> int:
    """Return a split's position in the order of use; unknown splits come last."""
    return _SPLIT_ORDER.index(split) if split in _SPLIT_ORDER else len(_SPLIT_ORDER)


def read(path: Path, reader: Callable[[Path], Any] = read_json) -> dict[str, Any]:
    """Read a document; empty if the file does not exist (yet).

    Raises DataError if the file is damaged or is not a document.
    """
    try:
        found = clean(reader(path))
    except (Unreadable, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(found, dict | None):
        raise _damaged(path, f"a {type(found).__name__} instead of keys with values")
    return found or {}


def read_config(path: Path) -> dict[str, Any]:
    """Read the config of a run, or the resources of its job; empty if the file does not exist (yet).

    Raises DataError if the file is damaged or is not a document, and OSError.
    """
    return read(path, lambda path: parse(read_text(path)).value if path.is_file() else None)


def read_artifact(path: Path, make: Callable[[Mapping[str, Any]], Value]) -> Value | None:
    """Make a value from a JSON document; None if the file does not exist. Raises DataError."""
    if not (document := read(path)):
        return None
    try:
        return make(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"{type(error).__name__} {error}") from error


def read_artifacts(pattern: Path, make: Callable[[str, Mapping[str, Any]], Value]) -> list[Value]:
    """Make a value from every JSON document that matches the pattern, by name. Raises DataError.

    pattern  a path with one * in its name
    make     gets the text matched by the *, and the document
    """
    prefix, suffix = pattern.name.split("*")
    found = []
    for path in sorted(pattern.parent.glob(pattern.name)):
        name = clean(path.name[len(prefix) : -len(suffix)])
        if (value := read_artifact(path, partial(make, name))) is not None:
            found.append(value)
    return found


def _damaged(path: Path, found: str) -> DataError:
    return DataError(f"{path}: cannot be read ({found}); a report needs the file as the run wrote it")
