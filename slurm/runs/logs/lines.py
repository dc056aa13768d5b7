"""Reading logs of any size: from the end, line by line, and made safe for a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from toolkit.system.output.sanitize import clean

#: Bytes read at once, and the longest line: what never ends its line is cut here.
_BLOCK = 1 << 16

#: Colours, and all else that a terminal takes as an order beginning with ESC [.
_ORDERS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def tail_start(path: Path, lines: int) -> int:
    """The byte at which the last `lines` lines of a file begin. Raises OSError."""
    with open(path, "rb") as stream:
        position = end = stream.seek(0, os.SEEK_END)
        while position > 0:
            size = min(_BLOCK, position)
            position = stream.seek(position - size)
            block = stream.read(size)
            # The line end at the very end begins no line.
            at = size - 1 if position + size == end else size
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                lines -= 1
                if lines == 0:
                    return position + at + 1
        return 0


def read_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    """The lines of a file from a byte on, with their ends. Raises OSError."""
    with open(path, "rb") as stream:
        stream.seek(start)
        while line := stream.readline(_BLOCK):
            yield line


class Tail:
    """A file that grows: each look gives the lines that have come since the last one."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self._path = path
        self._position = position

    def look(self, *, last: bool = False) -> Iterator[bytes]:
        """New lines; one without an end is kept for the next look, unless there will be none."""
        try:
            size = self._path.stat().st_size
            if size < self._position:
                # The file was emptied.
                self._position = 0
            if size > self._position:
                yield from self._read(last)
        except OSError:
            # Not there for a moment, on a network file system; the next look may find it.
            return

    def _read(self, last: bool) -> Iterator[bytes]:
        for line in read_lines(self._path, self._position):
            if not (line.endswith(b"\n") or last or len(line) == _BLOCK):
                return
            self._position += len(line)
            yield line


def shown(raw: bytes) -> str:
    """A line for a terminal, without its end: of a line that was written over, the last state.

    Colours are left out, and other control characters become their pictures.
    """
    text = _ORDERS.sub("", raw.decode("utf-8", "replace")).rstrip("\r\n")
    return str(clean(text.rpartition("\r")[2]))
