"""Lines as they come: a whole block of a file, a single one of somebody who types."""

from __future__ import annotations

import codecs
import os
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DataError

#: What is held at once: lines, and bytes of them.
LINES = 2000
_BYTES = 1 << 20
_READ = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where lines are from.

    name  for messages
    size  in bytes, if it is known
    """

    descriptor: int
    name: str
    size: int | None


@contextmanager
def source(path: Path | None) -> Iterator[Source]:
    """Open a file, or standard input for none. Raises DataError."""
    if path is None:
        yield Source(descriptor=0, name="standard input", size=_size(0))
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        yield Source(descriptor=descriptor, name=str(path), size=_size(descriptor))
    finally:
        os.close(descriptor)


def _size(descriptor: int) -> int | None:
    """Bytes of a file; a pipe has none."""
    return os.fstat(descriptor).st_size or None


def blocks(given: Source) -> Iterator[tuple[list[str], int]]:
    """Yield lines (UTF-8) without their ends, and their bytes: as many as there are without waiting.

    Only line feeds end lines: a text may have any other separator. Raises DataError naming the line.
    """
    rest, lines, number = b"", list[bytes](), 1
    while data := _read(given):
        *whole, rest = (rest + data).split(b"\n")
        lines += whole
        size = sum(map(len, lines))
        if lines and (len(lines) >= LINES or size >= _BYTES or not _is_more(given)):
            yield from _decoded(given, lines, number)
            number += len(lines)
            lines = []
    if rest:
        lines.append(rest)
    if lines:
        yield from _decoded(given, lines, number)


def _read(given: Source) -> bytes:
    try:
        return os.read(given.descriptor, _READ)
    except OSError as error:
        raise DataError(f"{given.name} cannot be read: {error.strerror or error}") from error


def _is_more(given: Source) -> bool:
    """Whether reading would not wait."""
    return bool(select.select([given.descriptor], [], [], 0)[0])


def _decoded(given: Source, lines: Sequence[bytes], first: int) -> Iterator[tuple[list[str], int]]:
    """Yield what can be decoded, before what cannot is told of."""
    found: list[str] = []
    size = 0
    for number, line in enumerate(lines, start=first):
        try:
            text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode()
        except UnicodeDecodeError as error:
            yield found, size
            raise DataError(
                f"{given.name}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
            ) from error
        found.append(text.removesuffix("\r"))
        # The line feed, too.
        size += len(line) + 1
    yield found, size
