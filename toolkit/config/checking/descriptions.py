"""Descriptions of what was found and what is allowed, for messages about faults."""

from __future__ import annotations

import types
from dataclasses import is_dataclass
from typing import Any, Union, get_args, get_origin

from toolkit.config.fields import Limits

_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    Any: "any value",
}
_PLURALS: dict[Any, str] = {int: "whole numbers", float: "numbers", str: "texts"}
_LONGEST = 60


def without_none(hint: Any) -> tuple[Any, bool]:
    """Return a type hint without `| None`, and whether it had that."""
    if get_origin(hint) in (types.UnionType, Union):
        members = get_args(hint)
        if type(None) in members:
            # An option has one type besides None.
            (member,) = (each for each in members if each is not type(None))
            return member, True
    return hint, False


def found(value: Any) -> str:
    """Describe a value, shortened, and its type."""
    if value is None:
        return "found null"
    if isinstance(value, bool):
        return f"found {str(value).lower()} (a truth value)"
    if isinstance(value, dict):
        return "found a mapping"
    kinds: tuple[tuple[type, str], ...] = (
        (str, "text"), (int, "a whole number"), (float, "a number"), (list, "a list")
    )  # fmt: skip
    kind = next((name for cls, name in kinds if isinstance(value, cls)), type(value).__name__)
    text = repr(value)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST - 10]}…{text[-9:]}"
    return f"found {text} ({kind})"


def allowed(hint: Any, limits: Limits) -> str:
    """Describe what a type and its limits allow."""
    hint, optional = without_none(hint)
    return _allowed(hint, limits) + (", or null" if optional else "")


def _allowed(hint: Any, limits: Limits) -> str:
    if get_origin(hint) in (types.UnionType, Union):
        number, text = get_args(hint)
        return f"{_NAMES[number]}{_range(limits)}, or {_allowed(text, limits)}"
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        count = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        return f"a list of {count}{_items(arguments[0], limits, 'sections')}{_range(limits)}"
    if get_origin(hint) is dict:
        file = ", or the name of a JSON file with one" if limits.json_file else ""
        return f"a mapping of names to {_items(arguments[1], limits, 'values')}{_range(limits)}{file}"
    if limits.choices:
        return "one of " + ", ".join(str(choice) for choice in limits.choices)
    if limits.pattern:
        return f"text of the form {limits.pattern}"
    if limits.path:
        return "the name of a file or folder"
    if is_dataclass(hint):
        return "a section (a mapping)"
    return _NAMES[hint] + _range(limits)


def _items(hint: Any, limits: Limits, others: str) -> str:
    if limits.choices:
        return f"values that are each one of {', '.join(map(str, limits.choices))}"
    return "names of files or folders" if limits.path else _PLURALS.get(hint, others)


def _range(limits: Limits) -> str:
    low, above, high = limits.minimum, limits.above, limits.maximum
    if low is not None and high is not None:
        return f" from {low} to {high}"
    words = [
        f"of at least {low}" if low is not None else "",
        f"above {above}" if above is not None else "",
        f"of at most {high}" if high is not None else "",
    ]
    return "".join(f" {word}" for word in words if word)
