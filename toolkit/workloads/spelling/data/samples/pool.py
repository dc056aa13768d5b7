"""Make shards in several processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context, parent_process

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.samples.shards import Job, Shard, ShardMaker


def make_all(job: Job, shards: Sequence[Shard], workers: int) -> Iterator[Shard]:
    """Make shards, in any order; yield each when it is finished. Raises DataError, OSError.

    With one worker, this process makes them.
    """
    workers = min(workers, len(shards))
    if workers > 1:
        yield from _in_pool(job, shards, workers)
    elif shards:
        maker = ShardMaker(job)
        for shard in shards:
            maker.make(shard)
            yield shard


def _in_pool(job: Job, shards: Sequence[Shard], workers: int) -> Iterator[Shard]:
    # Not fork: a training process has threads, and locks that they hold would never be released in the child.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        futures = {pool.submit(_make, job, shard): shard for shard in shards}
        for future in as_completed(futures):
            future.result()
            yield futures[future]
    except BrokenProcessPool as error:
        raise DataError(
            "a process that prepares the data was killed, maybe for lack of memory: use fewer data.workers. "
            "Finished shards are kept: start again to continue"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    # Ctrl-C reaches all processes of a terminal, a scheduler's signal all of a job. The parent handles both.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """Exit when the parent process has ended, because a killed parent cannot stop this process."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _make(job: Job, shard: Shard) -> None:
    _maker(job).make(shard)


@cache
def _maker(job: Job) -> ShardMaker:
    """Return the maker of the shards of a job; a process of the pool creates it for its first shard."""
    return ShardMaker(job)
