"""Values of a key of a sweep, or a range to draw from. Pure.

A draw depends only on (seed, number of the sample, key), so further samples or keys do not change it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.config.composition.yaml_files import Unreadable, parse
from toolkit.errors import UserError

#: Significant digits of a drawn number; seventeen would not fit into a table.
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Values:
    """Listed values, as YAML: a grid takes each, a random sweep draws one with equal probability."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.values)

    def at(self, share: float) -> str:
        return self.values[int(share * len(self.values))]


@dataclass(frozen=True, slots=True)
class Choice(Values):
    """One of these values, drawn with equal probability; not for a grid."""

    def __str__(self) -> str:
        return f"choice({', '.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Uniform:
    """A number between two limits."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"uniform({self.low:g}, {self.high:g})"

    def at(self, share: float) -> str:
        return number_text(self.low + share * (self.high - self.low), self.low, self.high)


@dataclass(frozen=True, slots=True)
class LogUniform:
    """A number between two limits with a uniform logarithm."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"loguniform({self.low:g}, {self.high:g})"

    def at(self, share: float) -> str:
        return number_text(self.low * (self.high / self.low) ** share, self.low, self.high)


@dataclass(frozen=True, slots=True)
class RandInt:
    """A whole number, both limits included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"randint({self.low}, {self.high})"

    def at(self, share: float) -> str:
        return str(self.low + int(share * (self.high - self.low + 1)))


Space = Values | Uniform | LogUniform | RandInt


def draw(space: Space, seed: int, number: int, key: str) -> str:
    """The value of a key in one sample, as YAML."""
    digest = hashlib.sha256(f"{seed}\n{number}\n{key}".encode()).digest()
    # 53 bits, the precision of a float, so that the share is below 1.
    return space.at((int.from_bytes(digest[:8], "big") >> 11) / 2**53)


def range_of(kind: str, limits: Sequence[Any]) -> Space:
    """The range for a word such as `loguniform`. Raises UserError that says what is expected."""
    if kind == "choice":
        if not limits:
            raise UserError("choice needs at least one value")
        return Choice(tuple(written(value) for value in limits))
    if len(limits) != 2 or not all(_is_number(each) for each in limits):
        raise UserError(f"{kind} needs two numbers, found {', '.join(map(written, limits)) or 'none'}")
    low, high = limits
    if not low < high:
        raise UserError(f"{kind} goes from the lower to the higher number, found {low} and {high}")
    if kind == "loguniform" and low <= 0:
        raise UserError(f"loguniform needs numbers above 0, found {low}")
    if kind == "randint" and not all(isinstance(each, int) for each in limits):
        raise UserError(f"randint needs whole numbers, found {low} and {high}")
    return _RANGES[kind](low, high)


_RANGES: Mapping[str, Callable[[Any, Any], Space]] = {
    "uniform": Uniform,
    "loguniform": LogUniform,
    "randint": RandInt,
}
#: The words for ranges, on the command line and in a file.
RANGES = (*_RANGES, "choice")


def written(value: Any) -> str:
    """A plain value as YAML on one line that parses to the same value."""
    if isinstance(value, str):
        try:
            if value == value.strip() and "\n" not in value and parse(value).value == value:
                return value
        except Unreadable:
            pass
    # An unreadable value is told elsewhere.
    return json.dumps(value, ensure_ascii=False, default=str)


def number_in(value: str) -> float | None:
    """A written value as a number; None if it is not one."""
    try:
        found = parse(value).value
    except Unreadable:
        return None
    return float(found) if _is_number(found) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number_text(value: float, low: float, high: float) -> str:
    """A drawn number as it is written: rounded, but within its limits."""
    return repr(min(max(float(f"{value:.{_DIGITS}g}"), low), high))
