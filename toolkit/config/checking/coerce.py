"""Conversion of a scalar, or of the text of a variable, to the type of its key."""

from __future__ import annotations

import math
from typing import Any

from toolkit.config.composition.interpolation import Resolved
from toolkit.config.composition.yaml_files import Unreadable, parse, scalar

#: Stands for a value that its type does not allow.
WRONG: Any = object()


def is_null(value: Any) -> bool:
    """Whether a text from a reference means null."""
    return isinstance(value, Resolved) and scalar(value.strip()) is None


def flow_list(value: Any) -> Any:
    """Return the list in the text of a variable; any other value unchanged."""
    if isinstance(value, Resolved) and value.strip().startswith("["):
        try:
            return parse(str(value)).value
        except Unreadable:
            return value
    return value


def _integer(value: Any) -> Any:
    value = _from_text(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else WRONG


def number_of(value: Any) -> Any:
    """Return the value as a finite number, or WRONG."""
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
    return str(value) if isinstance(value, str) else WRONG


def _integer_or_text(value: Any) -> Any:
    number = _integer(Resolved(value) if isinstance(value, str) else value)
    return str(value) if number is WRONG and isinstance(value, str) else number


#: Functions that convert a value to each type, or return WRONG.
CONVERSIONS: dict[Any, Any] = {
    int: _integer, float: number_of, bool: _truth, str: _text, int | str: _integer_or_text,
}  # fmt: skip


def _from_text(value: Any) -> Any:
    """Read a text from a reference as YAML; any other value stays unchanged."""
    return scalar(value.strip()) if isinstance(value, Resolved) else value
