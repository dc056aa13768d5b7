"""Copying many tensors at once: one core alone does not get the bandwidth of the memory.

In threads of their own where torch has one: its number belongs to the whole process, and threads of torch
spin while they wait for each other. Training waits for the copy, and the other ranks for rank 0, so the
cores are free.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch

#: More get little more out of the memory.
_THREADS = 4

#: Bytes that are worth a thread of their own, and at which large tensors are cut.
_SHARE = 8 << 20

#: Where to, and what.
Pair = tuple[torch.Tensor, torch.Tensor]


def copy(pairs: Iterable[Pair]) -> None:
    """Copy tensors to where they go; those of a GPU arrive when the current stream has got there."""
    on_gpu: list[Pair] = []
    here: list[Pair] = []
    for pair in pairs:
        (on_gpu if pair[1].is_cuda else here).append(pair)
    with torch.no_grad():
        # In this thread: each has a current stream of its own.
        for target, source in on_gpu:
            target.copy_(source, non_blocking=True)
    threads = _threads(sum(target.nbytes for target, _ in here))
    parts = iter([part for pair in here for part in _parts(pair)])
    if threads < 2:
        _work(parts)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="copy") as pool:
        for each in [pool.submit(_work, parts) for _ in range(threads)]:
            each.result()


def _work(parts: Iterator[Pair]) -> None:
    """Copy what no other thread has taken. The interpreter's lock guards the iterator; no copy holds it."""
    # It counts for one thread alone.
    with torch.no_grad():
        for target, source in parts:
            target.copy_(source)


def _parts(pair: Pair) -> Iterator[Pair]:
    """The pieces of a tensor, by its first dimension."""
    target, source = pair
    if target.nbytes <= _SHARE:
        yield pair
    else:
        rows = max(1, len(target) * _SHARE // target.nbytes)
        yield from zip(target.split(rows), source.split(rows), strict=True)


def _threads(size: int) -> int:
    """Those that so many bytes are worth, on the cores that this process may use."""
    if torch.get_num_threads() > 1:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _THREADS, size // _SHARE)
