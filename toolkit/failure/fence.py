"""The fence: two starts of a run never write beside each other.

While it trains, rank 0 holds the run's lock, and fence.json names its start. A start that the scheduler
makes of the same job raises the fence first: the earlier one, should it still live, finds it and leaves.
If that one is frozen and keeps the lock, the new start goes on without waiting for ever, for whatever wakes
up behind the fence leaves before it writes.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from filelock import FileLock, Timeout

from toolkit.errors import RunBusy
from toolkit.files import read_json, write_json
from toolkit.rundir import RunDir
from toolkit.world import World

#: Exit status of a process whose start another one has replaced.
EXIT_FENCED = 76

#: Starts that the fence remembers; a process of one of them knows that it has been replaced.
_KEPT = 256

#: `stk status` takes the lock for an instant to see whether it is held.
_MOMENT_S = 2.0


class Fenced(RunBusy):
    """Another start of the run has replaced this one, which must write nothing more."""


def raise_fence(run: RunDir, nonce: str, job: str = "") -> None:
    """Make a start the newest of its run. Rank 0 calls it."""
    present = _read(run)
    if present.get("nonce") == nonce:
        return
    earlier = [*present.get("earlier", ()), *([present["nonce"]] if present else ())]
    facts = {"nonce": nonce, "job": job, "host": socket.gethostname(), "pid": os.getpid()}
    kept = [name for name in earlier if name != nonce][-_KEPT:]
    write_json(run.fence, {**facts, "time": time.time(), "earlier": kept})


def is_fenced(run: RunDir, nonce: str) -> bool:
    """Whether a later start has replaced this one. One that has not raised the fence yet is not fenced."""
    present = _read(run)
    return present.get("nonce") != nonce and nonce in present.get("earlier", ())


def check(run: RunDir, nonce: str) -> None:
    """Raise Fenced where a later start has replaced this one."""
    if is_fenced(run, nonce):
        raise Fenced(f"{run.run_id} has been started anew: this start, {nonce}, writes nothing more")


def _read(run: RunDir) -> dict[str, Any]:
    try:
        return read_json(run.fence) or {}
    except (OSError, ValueError):
        # A network file system's bad moment; whoever writes next finds out by itself.
        return {}


@contextmanager
def alone(run: RunDir, world: World, patience_s: float) -> Iterator[None]:
    """Hold the run's lock on rank 0, with the fence raised, so that no other start writes beside this one.

    A start of the job that holds the lock waits at most patience_s for it and then goes on. Raises RunBusy
    at once where anybody else trains the run.
    """
    if not world.is_main:
        yield
        return
    lock = _take_over(run, world, patience_s) if _continues(run, world, patience_s) else _take(run)
    try:
        raise_fence(run, world.nonce, world.job)
        yield
    finally:
        lock.release()


def _continues(run: RunDir, world: World, patience_s: float) -> bool:
    """Whether the scheduler makes this start in place of the one that may hold the lock."""
    if not world.job:
        return False
    holder = _read(run)
    if not holder:
        return world.restart > 0
    return holder.get("job") == world.job or _is_silent(run, holder["nonce"], patience_s)


def _is_silent(run: RunDir, nonce: str, patience_s: float) -> bool:
    """Whether rank 0 of a start gave signs of life once, and no more."""
    try:
        heartbeat = read_json(run.heartbeat(nonce, 0))
    except (OSError, ValueError):
        return False
    return heartbeat is not None and time.time() - float(heartbeat["time"]) > patience_s


def _take(run: RunDir) -> FileLock:
    lock = FileLock(run.alive)
    try:
        lock.acquire(timeout=_MOMENT_S)
    except Timeout:
        raise RunBusy(
            f"{run.run_id} is being trained by another process right now: stk status shows it"
        ) from None
    return lock


def _take_over(run: RunDir, world: World, patience_s: float) -> FileLock:
    """Take the lock from an earlier start of the same job, alive or frozen."""
    raise_fence(run, world.nonce, world.job)
    lock = FileLock(run.alive)
    try:
        lock.acquire(timeout=patience_s)
        return lock
    except Timeout:
        # The frozen holder keeps its lock on a file without a name; ours is a new one.
        with suppress(FileNotFoundError):
            run.alive.unlink()
        return _take(run)
