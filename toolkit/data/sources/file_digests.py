"""SHA-256 of source files, remembered: a file is read once, not by every rank in every attempt.

<prepared_dir>/.digests/<name>.json holds the digest of a file and its stamps. A file with another
size, time or inode is read again. Imports nothing slow.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.files import read_object, write_quickly
from toolkit.workload import Progress

_FOLDER = ".digests"
_BLOCK = 1 << 20
#: Age in seconds from which a later change is sure to show in the stamps: clocks of file systems are as
#: coarse as two seconds, and a server's clock may differ from ours.
_SETTLED_S = 5.0


class NotRemembered(Exception):
    """The digest of files is not remembered, and reading them would take too long here."""


class Stamp(NamedTuple):
    """Properties that change with a file. Not its device, which has other numbers on other hosts."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Return the stamp of a file. Raises OSError, also for a pipe or a device: reading may never end."""
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, expected a file", str(path))
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


Stamps = tuple[Stamp, ...]

#: Most bytes that may be read for a digest that is not remembered; None: no limit.
_most: ContextVar[int | None] = ContextVar("most", default=None)

#: Digests that this process made, and digests received from all ranks of the run.
_made: dict[tuple[str, Stamps], str] = {}
_received: dict[tuple[str, Stamps], str] = {}


def file_sha256(path: Path, size: int, progress: Progress, memory: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits; the file is read only if the digest is not remembered.

    progress   called for each block; the first time before anything is read
    memory     folder of the prepared sets
    Raises OSError.
    """
    return remembered(path, [path], lambda: _read(path, size, progress), memory)


def remembered(name: Path, files: Sequence[Path], make: Callable[[], str], memory: Path) -> str:
    """The digest of these files together; made only if it is not remembered.

    name   the path by which the digest is remembered: the file, or the folder of the files
    Raises OSError, and NotRemembered within `at_most`.
    """
    key = os.path.abspath(name)
    stamps = tuple(Stamp.of(file) for file in files)
    if (known := _received.get((key, stamps)) or _look_up(memory, key, stamps)) is not None:
        return known
    most = _most.get()
    if most is not None and sum(stamp.size for stamp in stamps) > most:
        raise NotRemembered(key)
    began = time.time()
    digest = make()
    if most is None and tuple(Stamp.of(file) for file in files) == stamps:
        _made[key, stamps] = digest
        # A later change within the same tick of the clock could leave the stamps of a young file as they are.
        if all(began - stamp.mtime_ns / 1e9 > _SETTLED_S for stamp in stamps):
            _note(memory, key, stamps, digest)
    return digest


def is_limited() -> bool:
    """Whether `at_most` is active, so that nothing slow may be done."""
    return _most.get() is not None


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """In this block, read at most `size` bytes for digests that are not remembered, and store none."""
    token = _most.set(size)
    try:
        yield
    finally:
        _most.reset(token)


def hand_over(gather: Callable[[Any], list[Any]]) -> None:
    """Give all ranks the digests that each of them made. Collective if `gather` is."""
    made = [[key, stamps, digest] for (key, stamps), digest in _made.items()]
    for key, stamps, digest in chain.from_iterable(gather(made)):
        # After a round trip through JSON, stamps are lists.
        _received[key, tuple(Stamp(*stamp) for stamp in stamps)] = digest
    _made.clear()


def memory_of(data: Any) -> Path:
    """Return the folder for the digests of a data section's files: that of its prepared sets."""
    return Path(data.prepared_dir).expanduser()


def _read(path: Path, size: int, progress: Progress) -> str:
    progress("hash", 0, size)
    digest, done = hashlib.sha256(), 0
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            done += len(block)
            progress("hash", done, size)
    return digest.hexdigest()


def _file(memory: Path, key: str) -> Path:
    return memory / _FOLDER / f"{hashlib.sha256(key.encode(errors='surrogateescape')).hexdigest()[:32]}.json"


def _look_up(memory: Path, key: str, stamps: Stamps) -> str | None:
    """The stored digest for exactly these stamps; None without one."""
    noted = read_object(_file(memory, key))
    is_this = noted.get("stamps") == [list(stamp) for stamp in stamps]
    return str(noted["sha256"]) if is_this and "sha256" in noted else None


def _note(memory: Path, key: str, stamps: Stamps, digest: str) -> None:
    """Store a digest. If that fails, the file is only read again later."""
    file = _file(memory, key)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_quickly(file, json.dumps({"path": key, "stamps": stamps, "sha256": digest}) + "\n")
