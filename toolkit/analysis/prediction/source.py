"""Lines of a file or a pipe, as they arrive."""

from __future__ import annotations

import codecs
import gzip
import os
import select
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit.data.sources.compressed import is_compressed
from toolkit.data.sources.encoding_guess import guess
from toolkit.errors import DataError

_READ = 1 << 16
#: Maximum number of characters in a line.
LONGEST = 1 << 26

STANDARD_INPUT = "standard input"


class TextLines:
    """Lines with their ends; only line feeds end them. Memory: a block of the input, and one line.

    name    of the input, for messages
    number  of the line that was given last, from 1
    read    gives the next bytes, none at the end; waits for them
    ready   whether `read` would return without waiting
    Iterating raises DataError, which names the line.
    """

    def __init__(
        self, name: str, encoding: str, read: Callable[[], bytes], ready: Callable[[], bool] = lambda: True
    ) -> None:
        self.name, self.number = name, 0
        self._encoding, self._read, self._ready = encoding, read, ready
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._whole: deque[str] = deque()
        self._parts: list[str] = []
        self._held = self._cut = 0
        self._has_begun = self._has_ended = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._whole:
            if self._has_ended:
                raise StopIteration
            self._fill()
        self.number += 1
        return self._whole.popleft()

    def are_at_hand(self) -> bool:
        """Whether the next line, or a part of it, can be read without waiting."""
        return bool(self._whole) or self._has_ended or self._ready()

    def _fill(self) -> None:
        """Read a block, and cut it into lines."""
        block = self._read()
        *ends, rest = self._decoded(block).split("\n")
        if ends:
            ends[0] = "".join([*self._parts, ends[0]])
            self._parts, self._held = [], 0
        self._parts.append(rest)
        self._held += len(rest)
        self._cut += len(ends)
        if self._held > LONGEST:
            raise DataError(
                f"{self.name}:{self._cut + 1}: the line has more than {LONGEST:,} characters: "
                "expected a row in each line"
            )
        self._whole.extend(f"{line}\n" for line in ends)
        if not block:
            self._has_ended = True
            if last := "".join(self._parts):
                self._whole.append(last)

    def _decoded(self, block: bytes) -> str:
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            # The bytes before it are valid.
            before = error.object[: error.start].decode(self._encoding, "replace")
            line = self._cut + 1 + before.count("\n")
            found = error.object[error.start : error.start + 1].hex()
            raise DataError(
                f"{self.name}:{line}: found the byte 0x{found}, expected {self._encoding}: convert the text "
                f"to that{guess(error.object)}"
            ) from None
        except UnicodeError as error:
            raise DataError(
                f"{self.name}:{self._cut + 1}: {error}, expected {self._encoding}: convert the text to that, "
                "with a byte-order mark"
            ) from None
        if text and not self._has_begun:
            text, self._has_begun = text.removeprefix("\ufeff"), True
        if "\0" in text:
            line = self._cut + 1 + text.partition("\0")[0].count("\n")
            raise DataError(f"{self.name}:{line}: found a NUL byte, expected text")
        return text


@contextmanager
def opened(path: Path | None, encoding: str) -> Iterator[TextLines]:
    """Open a file, decompressed while it is read, or standard input for None. Raises DataError."""
    if path is None:
        yield TextLines(STANDARD_INPUT, encoding, lambda: os.read(0, _READ), lambda: _is_ready(0))
        return
    try:
        if is_compressed(path):
            with gzip.open(path, "rb") as unpacked:
                yield TextLines(str(path), encoding, lambda: unpacked.read1(_READ))
        else:
            with open(path, "rb", buffering=0) as stream:
                place = stream.fileno()
                yield TextLines(str(path), encoding, lambda: os.read(place, _READ), lambda: _is_ready(place))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path}: not a complete gzip file: it is truncated, damaged or not compressed"
        ) from error


def _is_ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])
