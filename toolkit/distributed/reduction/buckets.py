"""The gradients of several processes, summed bucket by bucket while backward computes the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction.protocol import is_power_of_two
from toolkit.distributed.reduction.tree import ALIGNED, TreeSum

#: The gradients of one subtree, by parameter; None means zeros.
Gradients = list[torch.Tensor | None]


@dataclass(slots=True)
class _Bucket:
    """Parameters whose gradients are sent together.

    numbers    indices of the parameters
    values     their gradients, flat, and the appended float64 numbers
    piggyback  elements at the end of `values` that hold float64 numbers
    missing    number of gradients of this step that are still missing
    """

    numbers: list[int]
    values: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    piggyback: int = 0
    missing: int = 0


class Buckets:
    """Sums the gradients of a group's processes.

    With a power of two of processes, the sum is a balanced tree. On the CPU, a thread sums each bucket except
    the last as soon as backward has written all its gradients, from the last layer to the first; all ranks
    take the buckets in the same order. A few float64 numbers are appended to the last bucket. With any other
    number of processes, the sum is an all-reduce.

    piggyback  number of float64 numbers that are appended to the last bucket
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], group: Group, bucket_bytes: int, piggyback: int
    ) -> None:
        self._parameters = parameters
        self._group = group
        self._tree = TreeSum(group.world) if is_power_of_two(group.world.size) else None
        self._buckets = [*_in_buckets(parameters, bucket_bytes if self._tree else None)]
        self._bucket_of = {number: bucket for bucket in self._buckets for number in bucket.numbers}
        self._views, self._piggyback = _lay_out(parameters, self._buckets, piggyback if self._tree else 0)
        # A GPU has its own queue, and NCCL needs the same order of operations on all ranks.
        overlaps = self._tree and parameters[0].device.type == "cpu" and len(self._buckets) > 1
        self._thread = ThreadPoolExecutor(1, "reduction") if overlaps else None
        self._sums: list[Future[object]] = []
        self._pending_subtrees: Sequence[Gradients] | None = None
        self._complete = 0
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(partial(self._arrived, number))
            for number, parameter in enumerate(parameters)
        ]

    def expect(self, pending_subtrees: Sequence[Gradients]) -> None:
        """Expect the gradients of the next backward pass; pending subtrees are added, the nearest first."""
        self._pending_subtrees, self._complete = pending_subtrees, 0
        for bucket in self._buckets:
            bucket.missing = len(bucket.numbers)

    def _arrived(self, number: int, parameter: nn.Parameter) -> None:
        if self._pending_subtrees is None:
            return
        if parameter.grad is self._views[number]:
            raise RuntimeError(
                "a parameter got its gradient twice in one backward pass, as in re-entrant checkpointing: "
                "train.reduction: exact sums gradients as they come, one per parameter"
            )
        self._place(number, parameter.grad)

    def _place(self, number: int, gradient: torch.Tensor | None) -> None:
        view = self._views[number]
        if gradient is None:
            view.zero_()
        else:
            # Adding zero turns -0.0 into 0.0, so that no sum is -0.0.
            torch.add(gradient, 0.0, out=view)
        for left in self._pending_subtrees or ():
            if (other := left[number]) is not None:
                view.add_(other)
        self._parameters[number].grad = view
        self._bucket_of[number].missing -= 1
        self._count_complete()

    def _count_complete(self) -> None:
        """Start the sums of complete buckets, in the order that all ranks use."""
        while self._complete < len(self._buckets) and self._buckets[self._complete].missing == 0:
            if self._thread is not None and self._complete < len(self._buckets) - 1:
                self._sums.append(self._thread.submit(self._sum, self._buckets[self._complete]))
            self._complete += 1

    def _sum(self, bucket: _Bucket) -> None:
        if self._tree is None:
            dist.all_reduce(bucket.values)
        else:
            self._tree(bucket.values, bucket.piggyback)

    def flush(self) -> None:
        """Place a zero gradient for every parameter that the backward pass did not reach."""
        for number, parameter in enumerate(self._parameters):
            if parameter.grad is None:
                self._place(number, None)
        self._pending_subtrees = None

    def finish(self, piggyback: np.ndarray) -> np.ndarray:
        """Set every `.grad` to the sum over the processes; return the sum of `piggyback`. Collective."""
        if self._tree is None:
            gathered = self._group.begin_rows(piggyback)
            self._sum_all()
            return gathered()
        self._piggyback.copy_(torch.from_numpy(piggyback).view(-1), non_blocking=True)
        self._sum_all()
        return self._piggyback.cpu().numpy().reshape(piggyback.shape)

    def _sum_all(self) -> None:
        """Wait for the sums that have begun, and compute the others."""
        first = len(self._buckets) - 1 if self._thread is not None else 0
        self._wait()
        for bucket in self._buckets[first:]:
            self._sum(bucket)

    def _wait(self) -> None:
        sums, self._sums = self._sums, []
        for each in sums:
            each.result()

    def close(self) -> None:
        """Remove the hooks, and finish the sums in which the other ranks take part, too."""
        for hook in self._hooks:
            hook.remove()
        if self._thread is None:
            return
        if self._complete == len(self._buckets):
            # The other ranks have begun the same sums; if one of them has ended, this raises.
            with suppress(RuntimeError):
                self._wait()
        self._thread.shutdown(wait=False, cancel_futures=True)


def _in_buckets(parameters: Sequence[nn.Parameter], most_bytes: int | None) -> Iterator[_Bucket]:
    """Split the parameters from last to first, about the order of backward; one bucket without a limit."""
    numbers: list[int] = []
    held = 0
    for number in reversed(range(len(parameters))):
        size = parameters[number].nbytes
        if numbers and most_bytes is not None and held + size > most_bytes:
            yield _Bucket(numbers)
            numbers, held = [], 0
        numbers.append(number)
        held += size
    yield _Bucket(numbers)


def _lay_out(
    parameters: Sequence[nn.Parameter], buckets: Sequence[_Bucket], piggyback: int
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Allocate each bucket, with room for the appended numbers in the last one.

    Returns a view for each parameter, in its shape and memory format, and the room for the numbers.
    """
    views, room = [torch.empty(0)] * len(parameters), torch.empty(0, dtype=torch.float64)
    for bucket in buckets:
        members = [parameters[number] for number in bucket.numbers]
        sizes = [member.numel() for member in members]
        length = sum(sizes)
        if bucket is buckets[-1] and piggyback:
            length += -length % ALIGNED
            bucket.piggyback = piggyback * room.itemsize // members[0].itemsize
        bucket.values = members[0].new_zeros(length + bucket.piggyback)
        if bucket.piggyback:
            room = bucket.values[length:].view(room.dtype)
        parts = bucket.values[: sum(sizes)].split(sizes)
        for number, member, part in zip(bucket.numbers, members, parts, strict=True):
            # A fused optimizer reads parameter and gradient in memory order.
            strides = torch.empty_like(member, device="meta").stride()
            views[number] = part.as_strided(member.shape, strides, part.storage_offset())
    return views, room
