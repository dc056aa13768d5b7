"""Read lines of text files by number, with their targets or labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.samples.parse_line import Line, parse_line
from toolkit.workloads.spelling.data.samples.sources import Source
from toolkit.workloads.spelling.data.texts.text_files import decoded

Starts = npt.NDArray[np.int64]

_BLOCK = 1 << 20


def line_starts(path: Path) -> Starts:
    """Return the positions at which the lines of a file begin, and its end: [lines + 1]. Raises OSError."""
    found, size = [np.zeros(1, np.int64)], 0
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            found.append(np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + (size + 1))
            size += len(block)
    starts = np.concatenate(found)
    return starts if starts[-1] == size else np.append(starts, size)


def read_lines(
    source: Source, starts: Sequence[Starts], places: Starts, *, has_labels: bool
) -> Iterator[Line]:
    """Yield the lines of a source at these places, which count from 0. Raises DataError naming file and line.

    starts      the starts of the lines of each of its files, as returned by `line_starts`
    has_labels  whether its second file has labels instead of texts
    """
    with ExitStack() as stack:
        streams = [stack.enter_context(open(file, "rb")) for file in source.files]
        for place in places.tolist():
            files = zip(source.files, streams, starts, strict=True)
            yield parse_line(source, place, [_text(*each, place) for each in files], has_labels=has_labels)


def _text(file: Path, stream: BinaryIO, starts: Starts, place: int) -> str:
    stream.seek(int(starts[place]))
    size = int(starts[place + 1] - starts[place])
    line = stream.read(size)
    if len(line) < size:
        raise DataError(f"{file}:{place + 1} changed while it was read; start again when its writer is done")
    return decoded(file, place + 1, line)
