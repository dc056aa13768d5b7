"""A history of bounded length that covers the whole time."""

from __future__ import annotations

from toolkit.monitoring.usage.values import Moment

#: Points that are kept.
LONGEST = 120


class History:
    """Keeps evenly spaced points: when full, it drops every second one and then adds half as many."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._kept: list[Moment] = []
        self._every = 1
        self._added = 0

    def add(self, moment: Moment) -> None:
        """Add the newest point, or skip it."""
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
