"""Building a folder once among any number of processes: it is complete or absent."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.errors import DataError
from toolkit.files import fsync_path

_POLL_S = 0.1
#: Seconds between calls of `waiting`, and between looks at the holder's signs of life.
_LOOK_S = 1.0
#: Seconds between signs of life of a process that builds a folder.
_BEAT_S = 20.0
#: Faults of a network file system that may pass.
_PASSING = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO})


def publish_once(
    path: Path,
    fill: Callable[[Path], None],
    is_ready: Callable[[], bool],
    lock_timeout_s: float,
    waiting: Callable[[], None] = lambda: None,
) -> bool:
    """Make the folder `path` unless it is ready; return whether this call made it.

    One process at a time calls `fill` with a temporary folder beside it, which is renamed when complete;
    the others wait as long as that process is alive, even for hours. The leftovers of a killed process and a
    folder that is not ready are removed. While this process waits it calls `waiting`, which may raise.
    Raises OSError for a fault of a network file system that may pass. Raises DataError if nothing can be
    written, or if the holder of the lock has shown no sign of life for lock_timeout_s seconds; a DataError of
    `fill` is passed on. If the folder is ready, no write permission is needed.
    """
    if is_ready():
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A group that shares the folder shares the lock, regardless of which user made its file.
        lock = FileLock(path.parent / f".{path.name}.lock", mode=0o664)
        with held(lock, path, lock_timeout_s, waiting):
            if is_ready():
                return False
            _remove_leftovers(path)
            return _make(path, fill, is_ready)
    except Timeout:
        raise DataError(
            f"waited {lock_timeout_s:g} s for {path}, which {_holder(path)} is making, without a sign of "
            "life from there; if that process hangs, stop it and start again"
        ) from None
    except (OSError, sqlite3.Error) as error:
        if isinstance(error, OSError) and error.errno in _PASSING:
            # Not the user's fault: another attempt may succeed.
            raise
        raise DataError(
            f"cannot write under {path.parent}: {error}. "
            "Set data.prepared_dir to a folder that you may write and that has room, or make room there"
        ) from error


@contextmanager
def held(lock: FileLock, path: Path, timeout_s: float, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock; wait for it, and call `waiting`, as long as its holder is alive. Raises Timeout."""
    seen, since = _beats(path), time.monotonic()
    while True:
        try:
            lock.acquire(timeout=min(_LOOK_S, timeout_s), poll_interval=_POLL_S)
            break
        except Timeout:
            waiting()
            # Compared with the earlier value, not with the clock: the clocks of two hosts differ.
            if (found := _beats(path)) != seen:
                seen, since = found, time.monotonic()
            elif time.monotonic() - since >= timeout_s:
                raise
    try:
        yield
    finally:
        lock.release()


def _beats(path: Path) -> list[tuple[str, int]]:
    """Return values that change as long as a process builds the folder."""
    found = []
    for temporary in _temporaries(path):
        with suppress(FileNotFoundError):
            found.append((temporary.name, temporary.stat().st_mtime_ns))
    return found


@contextmanager
def _beating(folder: Path) -> Iterator[None]:
    """Show waiting processes that this one is alive; in a thread, because one step may take long."""
    is_done = threading.Event()

    def beat() -> None:
        while not is_done.wait(_BEAT_S):
            with suppress(OSError):
                os.utime(folder)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _make(path: Path, fill: Callable[[Path], None], is_ready: Callable[[], bool]) -> bool:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{socket.gethostname()}.tmp")
    try:
        temporary.mkdir()
        with _beating(temporary):
            fill(temporary)
        os.rename(temporary, path)
        fsync_path(path.parent)
        return True
    except OSError as error:
        # If the file system's locks do not work, two processes may get here; the first folder is kept.
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and is_ready():
            return False
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_leftovers(path: Path) -> None:
    """Remove leftovers, if possible. No process uses them, because this one holds the lock."""
    if path.exists():
        # Renamed first: a partly removed folder must not look like a set.
        os.rename(path, path.with_name(f".{path.name}.{os.getpid()}.damaged.tmp"))
    for left in _temporaries(path):
        # What another user has left may not be ours to delete, and harms nothing.
        shutil.rmtree(left, ignore_errors=True)


def _temporaries(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f".{path.name}.*.tmp"))


def _holder(path: Path) -> str:
    """Return the process that builds the folder now, from the temporary name that was modified last."""
    with suppress(FileNotFoundError, ValueError):
        temporary = max(_temporaries(path), key=lambda each: each.stat().st_mtime)
        pid, _, host = temporary.name.removeprefix(f".{path.name}.").removesuffix(".tmp").partition(".")
        return f"process {pid} on {host}"
    return "another process"
