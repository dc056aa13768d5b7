"""Read lines as they arrive: blocks of lines of a file, single lines of a slow pipe."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.text_files import decoded, reading

#: A block has at most about this number of lines or bytes.
LINES = 2000
_BYTES = 1 << 20
_READ = 1 << 16
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An open file or pipe of lines.

    name  name in messages
    size  size in bytes, if it is known
    """

    descriptor: int
    name: str
    size: int | None


@contextmanager
def source(path: Path | None) -> Iterator[Source]:
    """Open a file; None: standard input. Raises DataError."""
    descriptor = 0
    if path is not None:
        with reading(path):
            descriptor = os.open(path, os.O_RDONLY)
    try:
        # The size of a pipe is 0.
        size = os.fstat(descriptor).st_size or None
        yield Source(descriptor=descriptor, name=str(path or "standard input"), size=size)
    finally:
        if path is not None:
            os.close(descriptor)


def blocks(given: Source) -> Iterator[tuple[list[str], int]]:
    """Yield blocks of lines (UTF-8, without line ends) and their size; a block does not wait for more lines.

    Only line feeds end lines, because a text may have any other separator. Raises DataError naming the line.
    """
    rest, lines, number = b"", list[bytes](), 1
    while data := _read(given):
        *whole, rest = (rest + data).split(b"\n")
        lines += whole
        is_full = len(lines) >= LINES or sum(map(len, lines)) >= _BYTES
        # More can be read without waiting if select returns the descriptor.
        if lines and (is_full or not select.select([given.descriptor], [], [], 0)[0]):
            yield from _decoded(given, lines, number)
            number += len(lines)
            lines = []
    if rest:
        lines.append(rest)
    if lines:
        yield from _decoded(given, lines, number)


def _read(given: Source) -> bytes:
    with reading(given.name):
        return os.read(given.descriptor, _READ)


def _decoded(given: Source, lines: Sequence[bytes], first: int) -> Iterator[tuple[list[str], int]]:
    numbered = enumerate(lines, start=first)
    for found in until_fault(decoded(given.name, *each).removesuffix("\r") for each in numbered):
        # One more for each line feed.
        yield found, sum(map(len, lines[: len(found)])) + len(found)


def until_fault(items: Iterable[_T]) -> Iterator[list[_T]]:
    """Yield all items as one list. If one of them raises DataError, yield those before it, then raise."""
    found: list[_T] = []
    try:
        for item in items:
            found.append(item)
    except DataError:
        yield found
        raise
    yield found
