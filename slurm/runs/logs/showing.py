"""The logs as they lie there: one after the other, or merged by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from slurm.runs.logs.lines import read_lines, shown, tail_start
from slurm.runs.logs.merging import merged
from slurm.runs.logs.sources import Source


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
    # By file: ranks of several starts have the same labels.
    logs = {str(source.path): _lines(source.path, lines) for source in sources}
    labels = _labels(sources)
    found = (labelled(labels[name], line) for name, line in merged(logs))
    return found if lines is None else iter(deque(found, maxlen=lines))


def _labels(sources: Sequence[Source]) -> dict[str, str]:
    """Return the label of each file's lines: its rank, and its start if there are several."""
    if len({source.group for source in sources}) == 1:
        return {str(source.path): source.label for source in sources}
    return {str(each.path): f"{each.title.partition(': ')[0]}, {each.label}" for each in sources}


def labelled(label: str, raw: bytes) -> str:
    """A line after the label of its writer."""
    return f"{label} | {shown(raw)}"


def _lines(path: Path, lines: int | None) -> Iterator[bytes]:
    try:
        yield from read_lines(path, 0 if lines is None else tail_start(path, lines))
    except OSError as error:
        yield f"({path} cannot be read: {error.strerror or error})\n".encode()
