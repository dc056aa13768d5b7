"""The order of samples as a pure function: the same on every rank, without communication.

A position in training is (epoch, step); its samples are computed, never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.data.order.shuffle import permutation, stream

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpochPlan:
    """Which samples each micro-batch of each step holds. The arrays are read-only.

    order          [n] every sample's index in its split, once
    offsets        [steps * micro_batches + 1] where each micro-batch begins in `order`
    micro_batches  parts of a step; some are empty if a step has fewer samples
    """

    order: Indices
    offsets: Indices
    micro_batches: int

    def __post_init__(self) -> None:
        self.order.setflags(write=False)
        self.offsets.setflags(write=False)

    @property
    def steps(self) -> int:
        return (len(self.offsets) - 1) // self.micro_batches

    def micro_batch(self, step: int, micro_batch: int) -> Indices:
        """Samples of one micro-batch; may be empty. Raises IndexError outside the epoch."""
        self._check(step)
        if not 0 <= micro_batch < self.micro_batches:
            raise IndexError(f"micro-batch {micro_batch} of a step with {self.micro_batches}")
        part = step * self.micro_batches + micro_batch
        return self.order[self.offsets[part] : self.offsets[part + 1]]

    def micro_batches_of(self, step: int, numbers: Sequence[int]) -> Indices:
        """Samples of some micro-batches of a step, in this order. Raises IndexError outside the epoch."""
        if len(numbers) == 1:
            return self.micro_batch(step, numbers[0])
        return np.concatenate([self.micro_batch(step, number) for number in numbers])

    def step(self, step: int) -> Indices:
        """Samples of all micro-batches of one step. Raises IndexError outside the epoch."""
        self._check(step)
        first = step * self.micro_batches
        return self.order[self.offsets[first] : self.offsets[first + self.micro_batches]]

    def placeholder(self, excluded: npt.ArrayLike = ()) -> Indices:
        """The first sample of the epoch that is not excluded, for a rank without samples; shape [1]."""
        first = self.order[: np.size(excluded) + 1]
        return first[~np.isin(first, excluded)][:1]

    def _check(self, step: int) -> None:
        # A negative step would silently address another one.
        if not 0 <= step < self.steps:
            raise IndexError(f"step {step} of an epoch with {self.steps} steps")


def steps_per_epoch(n: int, batch_size: int) -> int:
    """Number of steps for n samples; the last one may be incomplete."""
    return -(-n // batch_size)


def plan_epoch(
    lengths: npt.NDArray[np.integer],
    *,
    batch_size: int,
    micro_batches: int,
    pool_batches: int,
    seed: int,
    epoch: int,
    fingerprint: str,
) -> EpochPlan:
    """Plan one epoch of training; the same arguments give the same bytes, on any machine.

    Samples are shuffled by (fingerprint, seed, epoch) and cut into pools of pool_batches batches;
    inside a pool they are sorted by length, so that a batch holds samples of about one length
    (pool_batches 1: pure shuffling). The batches are then shuffled; an incomplete one comes last.
    Each batch is cut into micro_batches runs of neighbours whose sizes differ by at most 1.

    lengths  [n] length of every sample, any integer type
    """
    bits = stream("epoch plan 1", fingerprint, seed, epoch)
    order = permutation(bits, len(lengths))
    if pool_batches > 1:
        _sort_in_pools(order, lengths, pool_batches * batch_size)
    _shuffle_batches(order, batch_size, bits)
    return _plan(order, batch_size, micro_batches)


def plan_evaluation(lengths: npt.NDArray[np.integer], batch_size: int) -> EpochPlan:
    """Plan an evaluation: batches of batch_size in order of length, every sample exactly once.

    Step s is the whole batch s (one micro-batch). The plan does not depend on the world size, and sums
    over the steps are the same for any assignment of steps to ranks.
    """
    order = np.argsort(lengths, kind="stable").astype(np.int64, copy=False)
    return _plan(order, batch_size, 1)


def _sort_in_pools(order: Indices, lengths: npt.NDArray[np.integer], pool_size: int) -> None:
    """Sort each pool of `order` by length, in place and stably."""
    whole = len(order) // pool_size * pool_size
    for pools in (order[:whole].reshape(-1, pool_size), order[whole:].reshape(1, -1)):
        ranks = np.argsort(lengths[pools], axis=1, kind="stable")
        pools[:] = np.take_along_axis(pools, ranks, axis=1)


def _shuffle_batches(order: Indices, batch_size: int, bits: np.random.Philox) -> None:
    """Shuffle the complete batches of `order` among themselves, in place."""
    whole = len(order) // batch_size
    batches = order[: whole * batch_size].reshape(whole, batch_size)
    batches[:] = batches[permutation(bits, whole)]


def _plan(order: Indices, batch_size: int, micro_batches: int) -> EpochPlan:
    starts = np.arange(0, len(order), batch_size, dtype=np.int64)[:, None]
    sizes = np.minimum(batch_size, len(order) - starts)
    parts = np.arange(micro_batches, dtype=np.int64)[None, :]
    offsets = np.append(starts + sizes * parts // micro_batches, len(order)).astype(np.int64, copy=False)
    return EpochPlan(order=order, offsets=offsets, micro_batches=micro_batches)
