"""Find the lines of text files by number."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
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


def read_line(file: Path, stream: BinaryIO, starts: Starts, place: int) -> str:
    """Return line `place`, from 0, of an open file with these `line_starts`. Raises DataError naming it."""
    stream.seek(int(starts[place]))
    size = int(starts[place + 1] - starts[place])
    line = stream.read(size)
    if len(line) < size:
        raise DataError(f"{file}:{place + 1} changed while it was read; start again when its writer is done")
    return decoded(file, place + 1, line)
