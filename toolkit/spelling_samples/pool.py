"""Making shards in several processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process

from toolkit.errors import DataError
from toolkit.spelling_samples.shards import Job, Shard, ShardMaker

#: Of a process of the pool: its job, and what makes its shards, once it was asked for one.
_job: Job | None = None
_maker: ShardMaker | None = None


def usable_cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def make_all(job: Job, shards: Sequence[Shard], workers: int, done: Callable[[Shard], None]) -> None:
    """Make shards, in any order; `done` is told of each. Raises DataError, OSError.

    A single process makes them itself.
    """
    workers = min(workers, len(shards))
    if workers > 1:
        _in_pool(job, shards, workers, done)
    elif shards:
        maker = ShardMaker(job)
        for shard in shards:
            maker.make(shard)
            done(shard)


def _in_pool(job: Job, shards: Sequence[Shard], workers: int, done: Callable[[Shard], None]) -> None:
    # Not forked: a process that trains has threads, whose locks a copy would keep for ever.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(job,))
    try:
        futures = {pool.submit(_make, shard): shard for shard in shards}
        for future in as_completed(futures):
            future.result()
            done(futures[future])
    except BrokenProcessPool as error:
        raise DataError(
            "a process that prepares the data was killed, maybe for its memory; with fewer data.workers less "
            "is needed. The shards that are done are kept: start again to go on"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(job: Job) -> None:
    global _job
    _job = job
    # Ctrl-C reaches all processes of a terminal: the first one's answer is enough.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this process as soon as the one that started it is gone: killed, it cannot say so."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _make(shard: Shard) -> None:
    global _maker
    if _maker is None:
        assert _job is not None
        _maker = ShardMaker(_job)
    _maker.make(shard)
