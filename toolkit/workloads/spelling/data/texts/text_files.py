"""Text files: UTF-8, one text per line. Errors name the file and the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.words import normalised

Opener: TypeAlias = Callable[[Path], AbstractContextManager[BinaryIO]]


@contextmanager
def reading(path: object, done: str = "read") -> Iterator[None]:
    """Raise DataError if a file cannot be read or decoded; done: the participle in the message."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be {done}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: {error}; save the file as UTF-8") from error


def writing(path: Path) -> AbstractContextManager[None]:
    """Raise DataError if a file cannot be written."""
    return reading(path, "written")


def decoded(file: object, number: int, line: bytes) -> str:
    """Decode line `number` of a file, from 1; the first line may have a byte order mark. Raises DataError."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{file}:{number}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        ) from error


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    return open(path, "rb")


def read_texts(path: Path, opened: Opener = _opened) -> Iterator[str]:
    """Yield the texts of a file with single spaces; blank lines are skipped. Raises DataError.

    opened  opens the file; it may show a progress bar
    """
    with reading(path), opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            if text := normalised(decoded(path, number, line)):
                yield text


def spread(path: Path, limit: int | None, opened: Opener = _opened) -> Iterator[str]:
    """Yield at most `limit` texts, spread evenly over a file; None: all texts. Raises DataError."""
    if limit is None:
        yield from read_texts(path, opened)
        return
    count = sum(1 for _ in read_texts(path))
    kept = min(limit, count)
    for place, text in enumerate(read_texts(path, opened)):
        if (place + 1) * kept // count > place * kept // count:
            yield text
