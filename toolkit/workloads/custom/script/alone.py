"""The folder of a script that was started without `stk`: one training at a time uses it."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from toolkit.errors import UserError
from toolkit.files import regular
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import clean
from toolkit.workloads.custom.script.place import Place

#: `trains_elsewhere` takes the lock for an instant.
_MOMENT_S = 0.1

#: Errors of a lock that is a link, a folder, a pipe or a socket. Another user may have planted it.
_NO_FILE = (errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO)

#: The locks that this process holds, as descriptors, by folder.
_held: dict[Path, int] = {}


def hold_stand_in(place: Place) -> None:
    """Let no other training use the folder of a stand-in until this process ends. Called on rank 0.

    Processes that this one starts may use it too. Does nothing in a run of `stk`, which has its own lock, and
    on a file system without locks. Raises UserError if another training uses the folder, or if the lock is
    not a file or cannot be opened.
    """
    run = place.run
    if place.is_in_run or _holds(run) or not place.take_checkpoints():
        return
    with suppress(OSError):
        _lock_file(run).parent.mkdir(parents=True, exist_ok=True)
        descriptor = _open(str(_lock_file(run)), os.O_RDWR | os.O_CREAT)
        try:
            # Before the lock: an interruption in between must not lock this process out of its own folder.
            if _held.setdefault(run.path, descriptor) != descriptor:
                # Another thread has come first.
                os.close(descriptor)
                return
            _lock(descriptor)
        except BaseException as error:
            _release([run.path])
            if isinstance(error, BlockingIOError | PermissionError):
                raise _is_used(run) from None
            raise
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode())


def trains_elsewhere(run: RunDir) -> bool:
    """Whether another process holds the folder of a stand-in. False on a file system without locks."""
    if _holds(run):
        return False
    with suppress(OSError), open(_lock_file(run), "rb", opener=_open) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
    return False


def _lock_file(run: RunDir) -> Path:
    # Not in the folder, which may be deleted to start anew.
    return run.path.with_name(f".{run.path.name}.lock")


def _open(path: str, flags: int) -> int:
    try:
        return regular(path, flags | os.O_NOFOLLOW)
    except OSError as error:
        if isinstance(error, PermissionError) and os.path.lexists(path):
            raise UserError(
                f"{path} cannot be opened ({error.strerror}): another user may train in this folder. Remove "
                "the file, or choose another place with STK_EXPERIMENT_DIR"
            ) from None
        if error.errno not in _NO_FILE:
            raise
        raise UserError(f"{path} is not a file, but a link, a folder or a pipe: remove it") from None


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        time.sleep(_MOMENT_S)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _holds(run: RunDir) -> bool:
    """Whether this process holds the lock of the folder. A lock whose file was deleted is released."""
    descriptor = _held.get(run.path)
    if descriptor is None:
        return False
    try:
        found = _lock_file(run).stat()
        # On NFS, the open file has no facts any more if another host has deleted it.
        with suppress(OSError):
            if os.path.samestat(found, os.fstat(descriptor)):
                return True
    except FileNotFoundError:
        pass
    except OSError:
        # A network file system may be away for a moment.
        return True
    _release([run.path])
    return False


def make_stand_in(run: RunDir) -> None:
    """Make the folder of a stand-in. Raises UserError if that is impossible."""
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        from toolkit.run.create_run import cannot_write  # slow to import

        raise cannot_write(run, error) from error


def _is_used(run: RunDir) -> UserError:
    holder = ""
    with suppress(OSError, ValueError), open(_lock_file(run), encoding="utf-8", opener=_open) as file:
        holder = clean(file.read(100))
    return UserError(
        f"another training uses {run.path}: {holder or 'a process'}. Wait until it ends, or start both with "
        "`stk run`, which gives other arguments another folder. STK_EXPERIMENT_DIR chooses another place. "
        "If both are ranks of one training, set RANK and WORLD_SIZE in each"
    )


def _release(folders: list[Path]) -> None:
    for folder in folders:
        if (descriptor := _held.pop(folder, None)) is not None:
            # The file may be gone.
            with suppress(OSError):
                os.close(descriptor)


# A forked process would keep the lock when this one has ended.
os.register_at_fork(after_in_child=lambda: _release(list(_held)))
