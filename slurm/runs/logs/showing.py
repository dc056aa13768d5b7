"""The existing logs: one after the other, or merged by time."""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from slurm.runs.logs.lines import read_lines, shown, tail_start
from slurm.runs.logs.sources import Source

#: How the logs of ranks begin a line (toolkit.training.attempt.rank_log): as text, these sort by time.
_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def heading(title: str) -> str:
    """Return the heading of a log, as `tail` writes it."""
    return f"==> {title} <=="


def each(sources: Sequence[Source], lines: int | None) -> Iterator[str]:
    """The logs one after the other, of each the last lines or all; headings where there are several."""
    for number, source in enumerate(sources):
        if len(sources) > 1:
            yield from ["", heading(source.title)] if number else [heading(source.title)]
        yield from map(shown, _lines(source.path, lines))


def by_time(sources: Sequence[Source], lines: int | None) -> Iterator[str]:
    """The lines of all logs by time, each after its rank; of all together the last ones, or all."""
    labels = _labels(sources)
    logs = [_lines(source.path, lines) for source in sources]
    found = (labelled(labels[number], line) for number, line in merged(logs))
    return found if lines is None else iter(deque(found, maxlen=lines))


def _labels(sources: Sequence[Source]) -> list[str]:
    """Return the label of each log's lines: its rank, and its attempt if there are several."""
    if len({source.group for source in sources}) == 1:
        return [source.label for source in sources]
    return [f"{source.title.partition(': ')[0]}, {source.label}" for source in sources]


def labelled(label: str, raw: bytes) -> str:
    """A line after the label of its writer."""
    return f"{label} | {shown(raw)}"


def _lines(path: Path, lines: int | None) -> Iterator[bytes]:
    try:
        yield from read_lines(path, 0 if lines is None else tail_start(path, lines))
    except OSError as error:
        yield f"({path} cannot be read: {error.strerror or error})\n".encode()


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
    logs: Sequence[Iterable[bytes]], clocks: Sequence[Clock] | None = None
) -> Iterator[tuple[int, bytes]]:
    """The lines of all logs by time, each after the number of its log; those of one log in their order."""
    known = clocks or [Clock() for _ in logs]
    streams = [_numbered(number, known[number].times(lines)) for number, lines in enumerate(logs)]
    for _, number, line in heapq.merge(*streams, key=lambda each: each[0]):
        yield number, line


def _numbered(number: int, timed: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, int, bytes]]:
    for time, line in timed:
        yield time, number, line
