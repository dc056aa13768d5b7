"""Values that are stored as JSON: the arguments of a function, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Rational, Real
from pathlib import PurePath
from typing import Any

#: The name since numpy 2, and the name before. numpy itself is slow to import.
_NUMPYS_BOOL = ("numpy.bool", "numpy.bool_")
#: Whole numbers with at most this many bits have at most 4,300 digits, the limit of Python.
_MOST_BITS = 14_284


class NotPlain(Exception):
    """A value that JSON cannot hold: where it is, and its type."""


def plain(value: Any, place: str) -> Any:
    """Return the value as JSON holds it. Raises NotPlain.

    A tuple becomes a list, a path a text, and a number or bool of numpy one of Python. Other types are
    refused, because the value read back would differ from the given one.

    place  name of the value in messages, such as `argument x`
    """
    try:
        return _plain(value, place)
    except RecursionError:
        raise NotPlain(f"{place} holds itself, or is nested too deep") from None


def _plain(value: Any, place: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):
        if int(value).bit_length() > _MOST_BITS:
            raise NotPlain(f"{place} is a whole number of 4,300 digits or more")
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    if _type(value) in _NUMPYS_BOOL:
        return bool(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each, f"{place}[{index}]") for index, each in enumerate(value)]
    if isinstance(value, Mapping):
        return {_name(name, place): _plain(each, f"{place}[{name!r}]") for name, each in value.items()}
    raise NotPlain(f"{place} is of type {_type(value)}")


def _name(name: Any, place: str) -> str:
    if not isinstance(name, str):
        raise NotPlain(
            f"{place} is a dictionary with the key {name!r:.50}, of type {_type(name)}, and names are texts"
        )
    return str.__str__(name)


def _type(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
