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
    """Properties that change with a file. Not its device, which hosts of a network number differently."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Return the stamp of a file. Raises OSError, also for a pipe or a device, which may never end."""
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, expected a file", str(path))
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


Stamps = tuple[Stamp, ...]

#: Bytes that may be read for a digest that is not remembered; None: any number.
_most: ContextVar[int | None] = ContextVar("most", default=None)

#: Digests that this process made, or that another rank of the run made and handed over.
_made: dict[tuple[str, Stamps], str] = {}
_handed: dict[tuple[str, Stamps], str] = {}


def file_sha256(path: Path, size: int, progress: Progress, memory: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits; read only where it is not remembered.

    progress   called for each block; the first time before anything is read
    memory     folder of the prepared sets
    Raises OSError.
    """
    return remembered(path, [path], lambda: _read(path, size, progress), memory)


def remembered(name: Path, files: Sequence[Path], make: Callable[[], str], memory: Path) -> str:
    """The digest of these files together, made only where it is not remembered.

    name   what the digest is remembered by: the file, or the folder of the files
    Raises OSError, and NotRemembered within `at_most`.
    """
    key = os.path.abspath(name)
    stamps = tuple(Stamp.of(file) for file in files)
    if (known := _handed.get((key, stamps)) or _look_up(memory, key, stamps)) is not None:
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
    """Whether this is within `at_most`, so that nothing slow may be done."""
    return _most.get() is not None


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Within this, read at most `size` bytes for digests that are not remembered, and note nothing."""
    token = _most.set(size)
    try:
        yield
    finally:
        _most.reset(token)


def hand_over(gather: Callable[[Any], list[Any]]) -> None:
    """Let all ranks have the digests that each of them made. Collective, where `gather` is."""
    made = [[key, stamps, digest] for (key, stamps), digest in _made.items()]
    for key, stamps, digest in chain.from_iterable(gather(made)):
        # They may have come as lists.
        _handed[key, tuple(Stamp(*stamp) for stamp in stamps)] = digest
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
    """The digest that was noted for these very stamps, if there is one."""
    noted = read_object(_file(memory, key))
    is_this = noted.get("stamps") == [list(stamp) for stamp in stamps]
    return str(noted["sha256"]) if is_this and "sha256" in noted else None


def _note(memory: Path, key: str, stamps: Stamps, digest: str) -> None:
    """Write a digest down. A folder that may not be written costs time later, and nothing else."""
    file = _file(memory, key)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_quickly(file, json.dumps({"path": key, "stamps": stamps, "sha256": digest}) + "\n")
