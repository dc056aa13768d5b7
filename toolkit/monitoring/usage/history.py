"""A history of bounded length that covers the whole time."""

from __future__ import annotations

from toolkit.monitoring.usage.values import Moment

#: Points that are kept.
LONGEST = 120


class History:
    """Keeps the points of even distances: when it is full, every second one goes and half as many come."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._kept: list[Moment] = []
        self._every = 1
        self._added = 0

    def add(self, moment: Moment) -> None:
        """Add the newest point, or pass over it."""
        if self._added % self._every == 0:
            if len(self._kept) == self._longest:
                self._kept = self._kept[::2]
                self._every *= 2
            if self._added % self._every == 0:
                self._kept.append(moment)
        self._added += 1

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The points that are kept, oldest first."""
        return tuple(self._kept)
