"""One sweep as several arrays under one throttle. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One array of a sweep.

    size      its runs
    throttle  how many of them run at the same time; None for all
    follows   the number of the part that must have ended before it starts
    after     arrays that were handed in before, which must have ended
    """

    size: int
    throttle: int | None = None
    follows: int | None = None
    after: tuple[str, ...] = ()


def split(
    count: int, largest: int | None, throttle: int | None = None, busy: Mapping[str, int] | None = None
) -> list[Part]:
    """Cut `count` runs into arrays of at most `largest`, of which no more than `throttle` run at a time.

    busy   arrays of the same sweep that are not over, and how many runs each may have at work

    The throttle is shared out among arrays side by side, of equal size, so that they end together. Where
    there are more arrays than that, some follow others; where `busy` ones take all of it, all wait for those.
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
    """A whole number in parts that differ by 1 at most, the larger ones first."""
    small, more = divmod(whole, parts)
    return [small + (number < more) for number in range(parts)]
