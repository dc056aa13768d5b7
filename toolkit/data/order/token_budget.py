"""Steps of about equally many tokens: which samples share a step, and which share a micro-batch.

As in sample_order.py, all is a pure function of the lengths and the key of the epoch. The number of steps
depends only on the lengths: it is the same in every epoch, so that a position is (epoch, step).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.data.order.sample_order import EpochPlan, Indices
from toolkit.data.order.shuffle import permutation, stream
from toolkit.errors import DataError

Lengths = npt.NDArray[np.integer]

#: Attempts to even out the micro-batches of a step; further ones gain nothing.
_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Buckets:
    """Samples of about one length and the steps that they fill; [buckets] each, from the shortest up.

    capacity  samples of a full step
    whole     full steps of the bucket
    left      samples of the bucket that do not fill a step
    mixed     [steps] sizes of the steps that all these samples fill, from the longest bucket down
    """

    capacity: Indices
    whole: Indices
    left: Indices
    mixed: Indices

    @property
    def steps(self) -> int:
        return int(self.whole.sum()) + len(self.mixed)


def steps_of_tokens(lengths: Lengths, budget: int, span: int | None) -> int:
    """Steps of every epoch that `plan_tokens` plans. Raises DataError if a sample exceeds the budget."""
    _check(lengths, budget)
    if len(lengths) == 0:
        return 0
    return _step_count(lengths, budget) if span is None else _buckets(lengths, budget, span).steps


def plan_tokens(
    lengths: Lengths,
    *,
    budget: int,
    span: int | None,
    micro_batches: int,
    seed: int,
    epoch: int,
    fingerprint: str,
) -> EpochPlan:
    """Plan one epoch of training in steps of at most `budget` tokens; every sample is in one of them.

    With a span, samples with lengths in [k * span, (k + 1) * span) share steps of
    budget // ((k + 1) * span - 1) samples: padded to that length, they stay within the budget. The remaining
    samples fill steps from the longest down, each with the capacity of its longest sample's bucket. The
    steps are in random order.
    Without a span, steps are runs of shuffled samples with about equally many tokens, without padding.
    The samples of a step are sorted by length and cut into micro_batches runs of about equally many padded
    tokens; if there are fewer samples than runs, some are empty.

    lengths  [n] tokens of every sample, any integer type that int64 holds
    Raises DataError if a sample exceeds the budget.
    """
    _check(lengths, budget)
    bits = stream("token plan 1", fingerprint, seed, epoch)
    order = permutation(bits, len(lengths))
    if len(order) == 0:
        return EpochPlan(order=order, offsets=np.zeros(1, np.int64), micro_batches=micro_batches)
    if span is None:
        step = _even_steps(lengths[order], _step_count(lengths, budget))
    else:
        buckets = _buckets(lengths, budget, span)
        order = order[_sorting(lengths[order] // span)]
        step = permutation(bits, buckets.steps)[_steps_of_sorted(buckets)]
    order = order[_sorting(step * (int(lengths.max()) + 1) + lengths[order])]
    bounds = np.append(0, np.cumsum(np.bincount(step)))
    cuts = _balanced_cuts(lengths[order], bounds, micro_batches)
    offsets = np.append(cuts[:, :-1], len(order)).astype(np.int64, copy=False)
    return EpochPlan(order=order, offsets=offsets, micro_batches=micro_batches)


def plan_evaluation_tokens(lengths: Lengths, budget: int, most: int | None = None) -> EpochPlan:
    """Plan an evaluation: batches of at most `budget` padded tokens in order of length, every sample once.

    most   largest number of samples in a batch; None for any

    A longer sample forms a separate batch, because no sample may be left out. Step s is the whole
    batch s (one micro-batch), as in `plan_evaluation`.
    """
    order = np.argsort(lengths, kind="stable").astype(np.int64, copy=False)
    bounds = [len(order)]
    while bounds[-1] > 0:
        longest = max(int(lengths[order[bounds[-1] - 1]]), 1)
        samples = min(budget // longest, most or len(order))
        bounds.append(max(bounds[-1] - max(samples, 1), 0))
    return EpochPlan(order=order, offsets=np.array(bounds[::-1], dtype=np.int64), micro_batches=1)


def _check(lengths: Lengths, budget: int) -> None:
    if len(lengths) and lengths.max() > budget:
        sample = int(lengths.argmax())
        raise DataError(
            f"train.batch_max_length allows {budget} tokens in a step, but sample {sample} of the training "
            f"set has {lengths[sample]} alone: allow several times as many, or shorten the samples"
        )


def _sorting(keys: npt.NDArray[np.integer]) -> Indices:
    """Indices that sort the keys; equal keys keep their order."""
    bits = len(keys).bit_length()
    if int(keys.max()).bit_length() + bits > 64:
        return np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    # Each number includes its index: sorting such numbers takes a third of the time of argsort.
    packed = keys.astype(np.uint64)
    packed <<= np.uint64(bits)
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    packed &= np.uint64((1 << bits) - 1)
    return packed.view(np.int64)


def _buckets(lengths: Lengths, budget: int, span: int) -> _Buckets:
    counts = np.bincount(lengths // span)
    longest = np.arange(1, len(counts) + 1) * span - 1
    # The last bucket may end above the budget, although its samples do not; and a length may be 0.
    capacity = np.maximum(budget // np.maximum(longest, 1), 1)
    whole, left = np.divmod(counts, capacity)
    mixed = _mixed_sizes(left[::-1], capacity[::-1])
    return _Buckets(capacity=capacity, whole=whole, left=left, mixed=mixed)


def _mixed_sizes(left: Indices, capacity: Indices) -> Indices:
    """Sizes of the steps that the remaining samples of these buckets fill; at most as many as buckets."""
    ends = np.cumsum(left)
    sizes: list[int] = []
    start, end = 0, int(ends[-1])
    while start < end:
        bucket = np.searchsorted(ends, start, side="right")
        sizes.append(min(int(capacity[bucket]), end - start))
        start += sizes[-1]
    return np.array(sizes, dtype=np.int64)


def _steps_of_sorted(buckets: _Buckets) -> Indices:
    """Step of each sample, in the order of the buckets: [n]."""
    runs = buckets.whole + 1
    rests = np.cumsum(runs) - 1
    sizes = np.repeat(buckets.capacity, runs)
    sizes[rests] = buckets.left
    steps = np.arange(len(sizes)) - np.repeat(np.arange(len(runs)), runs)
    steps[rests] = -1
    found = np.repeat(steps, sizes)
    mixed = np.arange(len(buckets.mixed)) + int(buckets.whole.sum())
    # Mixed steps begin with the longest bucket, which comes last here.
    found[found == -1] = np.repeat(mixed, buckets.mixed)[::-1]
    return found


def _step_count(lengths: Lengths, budget: int) -> int:
    """Number of steps of about equal tokens that stay within the budget for any order of the samples.

    A step takes the samples that begin within its share of all tokens, so it may exceed the share by
    all but one token of the longest sample.
    """
    share = budget - int(lengths.max()) + 1
    steps = -(-int(lengths.sum(dtype=np.int64)) // share)
    return min(max(steps, 1), len(lengths))


def _even_steps(lengths: Lengths, steps: int) -> Indices:
    """Step of each sample, in this order: [n]; about equally many tokens and at least one sample per step."""
    n, ends = len(lengths), np.cumsum(lengths, dtype=np.int64)
    targets = np.arange(1, steps) * int(ends[-1]) // steps
    bounds = np.searchsorted(ends - lengths, targets)
    # A long sample may leave no sample for the next step, which then takes only the following one.
    places = np.arange(1, steps)
    bounds = np.maximum.accumulate(np.append(0, bounds - places))[1:] + places
    bounds = np.minimum(bounds, n - steps + places)
    return np.repeat(np.arange(steps), np.diff(bounds, prepend=0, append=n))


def _balanced_cuts(lengths: Lengths, bounds: Indices, parts: int) -> Indices:
    """Cut each step into parts of about equally many padded tokens: [steps, parts + 1] places.

    lengths  [n] tokens of the samples, in order of the steps and sorted inside each step
    bounds   [steps + 1] where each step begins in `lengths`
    """
    best = _cut(np.cumsum(lengths, dtype=np.int64), bounds, parts)
    largest, costs = _padded(lengths, best)
    for _ in range(_ROUNDS):
        # The cost of a sample is the padded length of its part, which depends on the cut.
        cuts = _cut(np.cumsum(costs), bounds, parts)
        found, costs = _padded(lengths, cuts)
        better = found < largest
        best[better], largest[better] = cuts[better], found[better]
    return best


def _cut(costs: Indices, bounds: Indices, parts: int) -> Indices:
    """Cut each step where its running cost is nearest to equal shares: [steps, parts + 1] places."""
    costs = np.append(0, costs)
    first, last = bounds[:-1, None], bounds[1:, None]
    shares = (costs[last] - costs[first]) * np.arange(parts + 1) // parts + costs[first]
    above = np.clip(np.searchsorted(costs, shares), first, last)
    below = np.maximum(above - 1, first)
    nearest = np.where(shares - costs[below] < costs[above] - shares, below, above)
    nearest[:, -1] = bounds[1:]
    return nearest


def _padded(lengths: Lengths, cuts: Indices) -> tuple[Indices, Indices]:
    """Padded tokens of the largest part of each step: [steps]; and of each sample: [n]."""
    sizes = np.diff(cuts, axis=1)
    # Samples are sorted, so the last of a part is its longest. An empty part has size 0, so its cost is 0.
    longest = lengths[cuts[:, 1:] - 1].astype(np.int64)
    return (sizes * longest).max(axis=1), np.repeat(longest.ravel(), sizes.ravel())
