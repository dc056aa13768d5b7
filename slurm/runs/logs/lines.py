"""Read logs of any size, from the end and line by line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path

#: Bytes read at once, and the longest line: longer lines are split.
_BLOCK = 1 << 16


def tail_start(path: Path, lines: int | None) -> int:
    """Return the offset of the last `lines` lines of a file; 0 for None, or if it cannot be read."""
    if lines is None:
        return 0
    with suppress(OSError), open(path, "rb") as stream:
        position = end = stream.seek(0, os.SEEK_END)
        while position > 0:
            size = min(_BLOCK, position)
            position = stream.seek(position - size)
            block = stream.read(size)
            # No line begins after a line end at the end of the file.
            at = size - 1 if position + size == end else size
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                lines -= 1
                if lines == 0:
                    return position + at + 1
    return 0


def read_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a file from an offset on, with their ends. Raises OSError."""
    return _newest(_pieces(path, start))


def _pieces(path: Path, start: int) -> Iterator[bytes]:
    """Yield lines; a long line is split before a carriage return, if it has one."""
    with open(path, "rb") as stream:
        stream.seek(start)
        while line := stream.readline(_BLOCK):
            # Carriage returns at the end may be part of the line's end.
            if len(line) == _BLOCK and (cut := line.rfind(b"\r", 1, len(line.rstrip(b"\r\n")))) > 0:
                line = line[:cut]
                stream.seek(cut - _BLOCK, os.SEEK_CUR)
            yield line


def _newest(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out each piece of a line that the next one overwrites, such as a state of a progress bar."""
    for piece, after in pairwise(chain(pieces, [b""])):
        if piece.endswith(b"\n") or not after.rstrip(b"\r\n").startswith(b"\r"):
            yield piece


class Tail:
    """A growing file: each look gives the lines since the previous look."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._path = path
        self._position = position

    def look(self, *, last: bool = False) -> Iterator[bytes]:
        """Yield new lines; a line without an end is kept for the next look, unless this is the last one."""
        return _newest(self._new(last))

    def _new(self, last: bool) -> Iterator[bytes]:
        try:
            size = self._path.stat().st_size
            if size < self._position:
                # The file was emptied.
                self._position = 0
            if size == self._position:
                return
            for line in _pieces(self._path, self._position):
                if not (line.endswith(b"\n") or last or self._position + len(line) < size):
                    return
                self._position += len(line)
                yield line
        except OSError:
            # On a network file system, the file may be missing for a moment.
            return
