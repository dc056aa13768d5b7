"""The fence: two attempts of a run never write at the same time.

While it trains, rank 0 holds the run's lock, and fence.json names its attempt. An attempt that the scheduler
starts for the same job raises the fence first: an earlier one that is still alive sees it and leaves. If the
earlier one is frozen and keeps the lock, the new attempt does not wait forever, because a process that wakes
up later checks the fence and leaves before it writes.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from toolkit.errors import RunBusy
from toolkit.exit_codes import ExitCode
from toolkit.files import create_once, read_json, read_object, write_json
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

# filelock is slow to import, and only a process that trains needs it.
if TYPE_CHECKING:
    from filelock import FileLock

#: Number of replaced attempts that the fence remembers.
_KEPT = 256

#: `stk status` takes the lock for an instant to see whether it is free.
_MOMENT_S = 2.0

log = logging.getLogger("toolkit")


class Fenced(RunBusy):
    """Another attempt has replaced this one, which must no longer write."""

    exit_code = ExitCode.FENCED


def raise_fence(run: RunDir, nonce: str, job: str = "") -> None:
    """Make an attempt the newest of its run. Called on rank 0. Raises OSError."""
    # An earlier attempt that is missing here could write again.
    present: dict[str, Any] = {}
    with suppress(ValueError):
        present = read_json(run.fence) or {}
    if present.get("nonce") == nonce:
        return
    facts = {"nonce": nonce, "job": job, "host": socket.gethostname(), "pid": os.getpid()}
    kept = [name for name in _names(present) if name != nonce][-_KEPT:]
    write_json(run.fence, {**facts, "time": time.time(), "earlier": kept})


def keep_fenced(run: RunDir, old: RunDir) -> None:
    """Fence the attempts of a folder that was set aside: they write nothing into the run's new one.

    What a finished attempt has left, such as a service, may go on.
    """
    present = read_object(old.fence)
    names = list(present.get("earlier", ())) if old.result.exists() else _names(present)
    # Without a name: no attempt of the new folder has begun.
    if names:
        with suppress(OSError):
            create_once(run.fence, json.dumps({"earlier": names}) + "\n")


def _names(fence: Mapping[str, Any]) -> list[str]:
    """The attempts that a fence knows, the newest one last."""
    return [*fence.get("earlier", ()), *([fence["nonce"]] if "nonce" in fence else ())]


def is_fenced(run: RunDir, nonce: str) -> bool:
    """Whether a later attempt has replaced this one. One that has not raised the fence yet is not fenced."""
    # If a network file system cannot read it for a moment, the next write checks again.
    present = read_object(run.fence)
    return present.get("nonce") != nonce and nonce in present.get("earlier", ())


def check(run: RunDir, nonce: str) -> None:
    """Raise Fenced if a later attempt has replaced this one."""
    if is_fenced(run, nonce):
        raise Fenced(f"{run.run_id} has been restarted: this attempt, {nonce}, writes nothing more")


def leave_if_fenced(run: RunDir, nonce: str) -> None:
    """End this process at once, with exit status FENCED, if a later attempt has replaced its own."""
    if is_fenced(run, nonce):
        log.warning("another attempt has replaced this one: leaving without writing anything")
        os._exit(ExitCode.FENCED)


@contextmanager
def hold_run(run: RunDir, world: World, patience_s: float) -> Iterator[None]:
    """Hold the run's lock on rank 0, with the fence raised, so that only this attempt writes.

    An attempt of the job that holds the lock waits at most patience_s for it and then continues without it.
    So does an attempt of another job if the holder gives no sign of life meanwhile.
    Raises RunBusy if any other process trains the run.
    """
    if not world.is_main:
        yield
        return
    if _continues(run, world):
        lock = _take_over(run, world, patience_s)
    elif world.job and _is_silent(run, patience_s):
        lock = _take_over(run, world, _MOMENT_S)
    else:
        lock = _take(run)
    try:
        raise_fence(run, world.nonce, world.job)
        yield
    finally:
        lock.release()


def _continues(run: RunDir, world: World) -> bool:
    """Whether the scheduler started this attempt again, in the job of the one that may hold the lock."""
    if not world.job:
        return False
    holder = read_object(run.fence)
    if "nonce" not in holder:
        return world.restart > 0
    return holder.get("job") == world.job


def _is_silent(run: RunDir, patience_s: float) -> bool:
    """Whether the newest attempt keeps the lock, but the heartbeat of its rank 0 has stopped."""
    from filelock import FileLock, Timeout

    fence = read_object(run.fence)
    file = run.heartbeat(fence.get("nonce", ""), 0)
    heartbeat = read_object(file)
    if not heartbeat or time.time() - float(heartbeat["time"]) <= patience_s:
        return False
    # The clock of its host may be behind: a live one writes its heartbeat again.
    with suppress(Timeout), FileLock(run.alive, timeout=patience_s):
        return False
    # Another job may have replaced it meanwhile.
    return read_object(file) == heartbeat and read_object(run.fence) == fence


def _take(run: RunDir) -> FileLock:
    from filelock import FileLock, Timeout

    lock = FileLock(run.alive)
    try:
        lock.acquire(timeout=_MOMENT_S)
    except Timeout:
        raise RunBusy(
            f"{run.run_id} is being trained by another process right now: stk status shows it"
        ) from None
    return lock


def _take_over(run: RunDir, world: World, patience_s: float) -> FileLock:
    """Take the lock from an earlier attempt, alive or frozen, that this one replaces."""
    from filelock import FileLock, Timeout

    raise_fence(run, world.nonce, world.job)
    lock = FileLock(run.alive)
    try:
        lock.acquire(timeout=patience_s)
        return lock
    except Timeout:
        # The frozen holder keeps its lock on the deleted file; this one is on a new file.
        with suppress(FileNotFoundError):
            run.alive.unlink()
        return _take(run)
