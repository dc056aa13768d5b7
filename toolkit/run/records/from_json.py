"""Frozen dataclasses from JSON objects, perhaps written by another version or edited by a user."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from toolkit.system.output.sanitize import number

T = TypeVar("T")

#: Metadata of a field whose key in JSON differs from its name.
KEY = "key"


def from_json(cls: type[T], value: Mapping[str, Any]) -> T:
    """Build a record of a dataclass from a JSON object.

    Unknown keys are ignored. A value of the wrong type counts as missing, so its field keeps the default.
    A field of a type that is not in _READERS always keeps it. Raises TypeError if a field without a default
    is missing.
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
    # Most are whole already, and a comparison takes less time than a conversion.
    return found if type(found) is int or found is None else int(found)


def text(value: object) -> str | None:
    """A string, also of a number; None for anything else."""
    if type(value) is str:
        return value
    return str(value) if isinstance(value, (str, int, float)) else None


#: The keys are annotations as text, because annotations are postponed.
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "int": whole,
    "float": number,
    "str": text,
    "bool": lambda value: value if isinstance(value, bool) else None,
    "tuple[str, ...]": lambda value: tuple(map(str, value)) if isinstance(value, list) else None,
    "tuple[int, ...]": lambda value: (
        tuple(each for each in value if isinstance(each, int)) if isinstance(value, list) else None
    ),
    "Mapping[str, Any]": lambda value: value if isinstance(value, dict) else None,
}


@cache
def _readers(cls: type) -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """For each key in JSON: the name of its field, and the function that reads its value."""
    return {
        field.metadata.get(KEY, field.name): (field.name, _READERS[field.type.removesuffix(" | None")])
        for field in dataclasses.fields(cls)
        if field.type.removesuffix(" | None") in _READERS
    }
