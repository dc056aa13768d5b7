"""Making a folder once, among any number of processes: it appears whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.errors import DataError
from toolkit.files import fsync_dir

_POLL_S = 0.1
_CURES = {
    errno.ENOSPC: "free space there",
    errno.EDQUOT: "your quota there is used up: free space",
    errno.EFBIG: "files there may not become that large (ulimit -f): raise the limit",
    errno.ENOLCK: "the file system there lacks locks: take another",
}
_SQLITE_ERRNO = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_CANTOPEN: errno.EACCES}


def publish_once(
    path: Path, fill: Callable[[Path], None], is_ready: Callable[[], bool], lock_timeout_s: float
) -> bool:
    """Make the folder `path` unless it is ready; return whether this call made it.

    One process at a time calls `fill` with a temporary folder beside it, which is renamed when whole;
    the others wait. What a killed process left behind, and a folder that is not ready, are removed.
    Raises DataError where nothing can be written or the lock is not free in time; errors of `fill`
    that are DataErrors pass. Needs no permission to write where the folder is ready.
    """
    if is_ready():
        return False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A group that shares the folder shares the lock, whoever made its file.
        lock = FileLock(path.parent / f".{path.name}.lock", timeout=lock_timeout_s, mode=0o664)
        with lock.acquire(poll_interval=_POLL_S):
            if is_ready():
                return False
            _remove_leftovers(path)
            return _make(path, fill, is_ready)
    except Timeout:
        raise DataError(
            f"waited {lock_timeout_s:g} s for {path}, which {_holder(path)} is making; "
            "if that process hangs, stop it and start again"
        ) from None
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"cannot write under {path.parent}: {error}. {_cure(error)}") from error


def _make(path: Path, fill: Callable[[Path], None], is_ready: Callable[[], bool]) -> bool:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{socket.gethostname()}.tmp")
    try:
        temporary.mkdir()
        fill(temporary)
        os.rename(temporary, path)
        fsync_dir(path.parent)
        return True
    except OSError as error:
        # Where a file system's locks do not work two may get here; the first one's folder stands.
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and is_ready():
            return False
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _remove_leftovers(path: Path) -> None:
    """Remove what cannot be in use, as this process holds the lock."""
    if path.exists():
        # Renamed first: half a removal must not look like a set.
        os.rename(path, path.with_name(f".{path.name}.{os.getpid()}.damaged.tmp"))
    for left in _temporaries(path):
        shutil.rmtree(left)


def _temporaries(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f".{path.name}.*.tmp"))


def _holder(path: Path) -> str:
    """Who makes the folder now, as its temporary name says."""
    for temporary in _temporaries(path):
        pid, _, host = temporary.name.removeprefix(f".{path.name}.").removesuffix(".tmp").partition(".")
        return f"process {pid} on {host}"
    return "another process"


def _cure(error: OSError | sqlite3.Error) -> str:
    code = error.errno if isinstance(error, OSError) else _SQLITE_ERRNO.get(error.sqlite_errorcode & 0xFF)
    advice = _CURES.get(code or 0)
    where = "set data.prepared_dir to a folder that you may write and that has room"
    return f"{advice[0].upper()}{advice[1:]}, or {where}" if advice else f"{where[0].upper()}{where[1:]}"
