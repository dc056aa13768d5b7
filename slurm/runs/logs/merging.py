"""Lines of several logs in the order of their times."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping

#: How the logs of ranks begin a line (toolkit.training.attempt.rank_log): as text, these sort by time.
_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


class Clock:
    """The times of one log's lines: a line without a time belongs to the one before it."""

    def __init__(self) -> None:
        self._last = b""

    def times(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Each line after its time."""
        for line in lines:
            if match := _TIME.match(line):
                # A host's clock may be set back: the lines of one log keep their order all the same.
                self._last = max(self._last, match[0])
            yield self._last, line


def merged(
    logs: Mapping[str, Iterable[bytes]], clocks: Mapping[str, Clock] | None = None
) -> Iterator[tuple[str, bytes]]:
    """The lines of all logs by time, each after the name of its log; those of one log in their order."""
    known = clocks or {name: Clock() for name in logs}
    streams = [_named(name, known[name].times(lines)) for name, lines in logs.items()]
    for _, name, line in heapq.merge(*streams, key=lambda each: each[0]):
        yield name, line


def _named(name: str, timed: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, str, bytes]]:
    for time, line in timed:
        yield time, name, line
