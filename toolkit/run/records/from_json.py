"""Frozen dataclasses from JSON objects, which another version may have written and a user may have edited."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from toolkit.system.sanitize import number

T = TypeVar("T")

#: Metadata of a field whose key in JSON differs from its name.
KEY = "key"


def from_json(cls: type[T], value: Mapping[str, Any]) -> T:
    """Build a record of a dataclass from a JSON object.

    Unknown keys are ignored. A value of the wrong type counts as missing, so its field keeps the default;
    so do fields of other types than those of _READERS. Raises TypeError if a field without a default is
    missing.
    """
    readers = _readers(cls)  # type: ignore[arg-type]
    found = {}
    for key, item in value.items():
        if (reader := readers.get(key)) is not None and (known := reader[1](item)) is not None:
            found[reader[0]] = known
    return cls(**found)


def whole(value: object) -> int | None:
    """A whole number; None for anything else."""
    found = number(value)
    return None if found is None else int(found)


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, list) else None


def _wholes(value: object) -> tuple[int, ...] | None:
    return tuple(each for each in value if isinstance(each, int)) if isinstance(value, list) else None


def _mapping(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, dict) else None


#: By annotation, which modules with postponed annotations keep as text.
_READERS: Mapping[str, Callable[[object], Any]] = {
    "int": whole,
    "float": number,
    "str": _text,
    "bool": _flag,
    "tuple[str, ...]": _texts,
    "tuple[int, ...]": _wholes,
    "Mapping[str, Any]": _mapping,
}


@cache
def _readers(cls: type) -> dict[str, tuple[str, Callable[[object], Any]]]:
    """For each key in JSON: the name of its field, and the function that reads its value."""
    return {
        field.metadata.get(KEY, field.name): (field.name, _READERS[field.type.removesuffix(" | None")])
        for field in dataclasses.fields(cls)
        if field.type.removesuffix(" | None") in _READERS
    }
