"""A key of a sweep as an axis: numbers on a linear or logarithmic scale, or names. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.report.formats import one_line, short_names
from toolkit.sweeps.results.collect import Results
from toolkit.sweeps.spaces import number_in

#: Ratio of the largest to the smallest number from which on the scale is logarithmic.
_WIDE = 50
#: Number of names that fit beside one axis.
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The values of the runs on an axis.

    places   a number for each run; None where its value is missing
    ticks    place and label
    is_log   places are to be shown on a logarithmic scale
    is_named the labels are names, so that values between them mean nothing
    """

    title: str
    places: tuple[float | None, ...]
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False
    is_named: bool = False

    def share(self, place: float) -> float:
        """A place, scaled to between 0 (lowest) and 1 (highest)."""
        places = (*self.places, *(tick for tick, _ in self.ticks))
        known = [self._scaled(each) for each in places if each is not None]
        low, high = min(known), max(known)
        return 0.5 if high == low else (self._scaled(place) - low) / (high - low)

    def _scaled(self, place: float) -> float:
        return math.log10(place) if self.is_log else place


def key_axes(results: Results) -> list[Axis]:
    """An axis for each key that differs between the finished runs."""
    axes = []
    for key, title in short_names(results.keys).items():
        values = [row.values.get(key) for row in results.ranked]
        if len(set(values)) > 1:
            axes.append(axis(title, values, is_log=_is_log(results, key)))
    return axes


def _is_log(results: Results, key: str) -> bool | None:
    """Whether the key is drawn from a logarithmic range; None for listed values, which may be either."""
    if key in results.log:
        return True
    return False if results.spaces.get(key, "").startswith(("uniform", "randint")) else None


def axis(title: str, values: Sequence[str | None], *, is_log: bool | None = None) -> Axis:
    """The axis of a key, from its value in each run.

    is_log   None: logarithmic if the numbers span a wide range
    """
    numbers = [None if value is None else number_in(value) for value in values]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < sum(value is not None for value in values):
        return _named(title, values)
    is_wide = min(known) > 0 and max(known) / min(known) >= _WIDE
    return of_numbers(title, numbers, is_log=is_wide if is_log is None else is_log)


def of_numbers(title: str, numbers: Sequence[float | None], *, is_log: bool = False) -> Axis:
    """The axis of numbers; at least one must be known."""
    known = sorted({number for number in numbers if number is not None})
    is_log = is_log and known[0] > 0
    listed = known if len(known) <= 6 else _round_numbers(known[0], known[-1], is_log)
    ticks = tuple((number, f"{number:g}") for number in listed)
    return Axis(title=title, places=tuple(numbers), ticks=ticks, is_log=is_log)


def _named(title: str, values: Sequence[str | None]) -> Axis:
    # Short ones first: [2], [2, 3], [2, 3, 4].
    names = sorted({value for value in values if value is not None}, key=lambda name: (len(name), name))
    places = {name: float(place) for place, name in enumerate(names)}
    shown = names if len(names) <= _MOST_NAMES else []
    return Axis(
        title=title,
        places=tuple(None if value is None else places[value] for value in values),
        ticks=tuple((places[name], one_line(name, 18)) for name in shown),
        is_named=True,
    )


def _round_numbers(low: float, high: float, is_log: bool) -> list[float]:
    """Some round numbers from about low to about high."""
    if is_log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        step = max(1, len(powers) // 6)
        return [10.0**power for power in powers[::step]]
    raw = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(raw))
    width = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first, last = math.floor(low / width), math.ceil(high / width)
    return [float(f"{number * width:.10g}") for number in range(first, last + 1)]
