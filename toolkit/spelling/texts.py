"""Files of clean texts, one a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from toolkit.errors import DataError
from toolkit.spelling.words import normalised

Opener: TypeAlias = Callable[[Path], AbstractContextManager[BinaryIO]]


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    return open(path, "rb")


def read_texts(path: Path, opened: Opener = _opened) -> Iterator[str]:
    """Yield the texts of a file (UTF-8) with single spaces; blank lines are passed over. Raises DataError.

    opened  opens the file, so that somebody may watch how far it is read
    """
    try:
        with opened(path) as stream:
            for number, line in enumerate(stream, start=1):
                if text := normalised(_decoded(path, number, line)):
                    yield text
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from error


def spread(path: Path, limit: int | None, opened: Opener = _opened) -> Iterator[str]:
    """Yield at most `limit` texts of a file, evenly from all of it; null for all. Raises DataError."""
    if limit is None:
        yield from read_texts(path, opened)
        return
    count = sum(1 for _ in read_texts(path))
    kept = min(limit, count)
    for place, text in enumerate(read_texts(path, opened)):
        if (place + 1) * kept // count > place * kept // count:
            yield text
