"""Scalars of an experiment: what a value, or the text of a variable, is as a type."""

from __future__ import annotations

import math
from typing import Any

from toolkit.config.yaml_files import Unreadable, parse, scalar

#: A value that its type does not allow.
WRONG: Any = object()


def is_null(value: Any) -> bool:
    """Whether a text means null."""
    return isinstance(value, str) and scalar(value.strip()) is None


def flow_list(value: Any) -> Any:
    """A list that came as text, because a variable is always text; anything else unchanged."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            return parse(value).value
        except Unreadable:
            return value
    return value


def _integer(value: Any) -> Any:
    value = _from_text(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else WRONG


def number_of(value: Any) -> Any:
    """A finite number, or WRONG."""
    value = _from_text(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return WRONG
    try:
        # Adding zero turns -0.0, which compares equal to it, into 0.0.
        number = float(value) + 0.0
    except OverflowError:
        return WRONG
    return number if math.isfinite(number) else WRONG


def _truth(value: Any) -> Any:
    value = _from_text(value)
    return value if isinstance(value, bool) else WRONG


def _text(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else WRONG


def _integer_or_text(value: Any) -> Any:
    number = _integer(value)
    return value if number is WRONG and isinstance(value, str) else number


#: What makes a value of each type, or WRONG.
CONVERSIONS: dict[Any, Any] = {
    int: _integer, float: number_of, bool: _truth, str: _text, int | str: _integer_or_text,
}  # fmt: skip


def _from_text(value: Any) -> Any:
    """What a text from the environment means as YAML."""
    return scalar(value.strip()) if isinstance(value, str) else value
