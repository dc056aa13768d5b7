"""Show existing logs, one after the other, or merged by time."""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path

from slurm.runs.logs.lines import read_lines, tail_start
from slurm.runs.logs.sources import Source
from toolkit.system.output.sanitize import log_line

#: Bytes of lines without a time, at most.
_LONGEST_TRACEBACK = 1 << 17
#: The time at the beginning of a line (toolkit.training.attempt.rank_log); its text sorts by time.
_TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


def heading(title: str) -> str:
    """Return the heading of a log, as `tail` writes it."""
    return f"==> {title} <=="


def each(sources: Sequence[Source], lines: int | None) -> Iterator[str]:
    """Yield the logs in sequence, all lines or the last ones of each, with headings if there are several."""
    for number, source in enumerate(sources):
        if len(sources) > 1:
            yield from ["", heading(source.title)] if number else [heading(source.title)]
        yield from map(log_line, _lines(source.path, tail_start(source.path, lines)))


def by_time(sources: Sequence[Source], lines: int | None) -> Iterator[str]:
    """Yield the lines of all logs by time, with their rank, and their attempt if there are several.

    lines   None: all, else the last ones of the merged lines
    """
    labels = [source.label for source in sources]
    if len({source.group for source in sources}) > 1:
        labels = [f"{source.title.partition(': ')[0]}, {source.label}" for source in sources]
    starts = [(source.path, tail_start(source.path, lines)) for source in sources]
    logs, clocks = [_lines(*start) for start in starts], [clock_at(*start) for start in starts]
    found = (labelled(labels[number], line) for number, line in merged(logs, clocks))
    return found if lines is None else iter(deque(found, maxlen=lines))


def labelled(label: str, raw: bytes) -> str:
    return f"{label} | {log_line(raw)}"


def _lines(path: Path, start: int) -> Iterator[bytes]:
    try:
        yield from read_lines(path, start)
    except OSError as error:
        yield f"({path} cannot be read: {error.strerror or error})\n".encode()


class Clock:
    """The times of one log's lines: a line without a time has that of the line before."""

    def __init__(self) -> None:
        self._last = b""

    def times(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the time and the text of each line."""
        for line in lines:
            if match := _TIME.match(line):
                # A host's clock may be set back, but the lines of one log must keep their order.
                self._last = max(self._last, match[0])
            yield self._last, line


def clock_at(path: Path, position: int) -> Clock:
    """Return the clock of the lines from a position of a log: a traceback there has the time before it."""
    clock = Clock()
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, position - _LONGEST_TRACEBACK))
        deque(clock.times(file.read(position - file.tell()).splitlines()), maxlen=0)
    return clock


def merged(logs: Sequence[Iterable[bytes]], clocks: Sequence[Clock]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of all logs by time, each with the number of its log; each log keeps its order."""
    streams = [zip(repeat(number), clocks[number].times(lines)) for number, lines in enumerate(logs)]
    for number, (_, line) in heapq.merge(*streams, key=lambda each: each[1][0]):
        yield number, line
