"""Split a sweep into several arrays with a common throttle. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One array of a sweep.

    size      number of its runs
    throttle  number of runs at the same time; None for all
    follows   number of the part that must have ended before it starts
    after     earlier arrays that must have ended before it starts
    """

    size: int
    throttle: int | None = None
    follows: int | None = None
    after: tuple[str, ...] = ()


def split(
    count: int, largest: int | None, throttle: int | None = None, busy: Mapping[str, int] | None = None
) -> list[Part]:
    """Split `count` runs into arrays of at most `largest`; at most `throttle` runs train at a time.

    busy   unfinished arrays of the same sweep, with the largest number of runs that each may run at once

    Arrays that run side by side share the throttle and have equal sizes, so that they end together. Further
    arrays follow them; if the `busy` arrays use the whole throttle, all new arrays wait for them.
    """
    arrays = -(-count // largest) if largest else 1
    if throttle is None:
        return [Part(size=size) for size in _even(count, arrays)]
    free = throttle - sum((busy or {}).values())
    after = () if free > 0 else tuple(busy or ())
    lanes = min(arrays, free if free > 0 else throttle)
    shares = _even(free if free > 0 else throttle, lanes)
    sizes = _even(count, min(count, -(-arrays // lanes) * lanes))
    return [
        Part(
            size=size,
            throttle=shares[number % lanes],
            follows=number - lanes if number >= lanes else None,
            after=after if number < lanes else (),
        )
        for number, size in enumerate(sizes)
    ]


def _even(whole: int, parts: int) -> list[int]:
    """Return a whole number split into parts that differ by at most 1, larger parts first."""
    small, more = divmod(whole, parts)
    return [small + (number < more) for number in range(parts)]
