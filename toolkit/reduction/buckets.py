"""The gradients of several processes, summed bucket by bucket while backward still works on the rest."""

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

from toolkit.distributed import Group
from toolkit.reduction.base import is_power_of_two
from toolkit.reduction.tree import ALIGNED, TreeSum

#: The gradients of one subtree, by parameter; None stands for zeros.
Gradients = list[torch.Tensor | None]


@dataclass(slots=True)
class _Bucket:
    """Parameters whose gradients travel together.

    numbers  of the parameters
    values   their gradients, flat, and what rides at the end
    riding   elements of `values` that ride
    missing  how many gradients of this step are yet to come
    """

    numbers: list[int]
    values: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    riding: int = 0
    missing: int = 0


class Buckets:
    """Sums the gradients of a group's processes.

    On a power of two of processes in a balanced tree. On the CPU, where there are several buckets, a thread
    begins with each but the last once backward has left its last gradient there, from the last layer to the
    first; all ranks take the buckets in the same order. The last one takes a few other numbers along. On
    another number of processes an all-reduce sums them all.

    riding  how many numbers of double precision the last bucket takes along
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], group: Group, bucket_bytes: int, riding: int
    ) -> None:
        self._parameters = parameters
        self._group = group
        self._tree = TreeSum(group.world) if is_power_of_two(group.world.size) else None
        self._buckets = [*_in_buckets(parameters, bucket_bytes if self._tree else None)]
        self._bucket_of = {number: bucket for bucket in self._buckets for number in bucket.numbers}
        self._views, self._riding = _lay_out(parameters, self._buckets, riding if self._tree else 0)
        # A GPU has a queue of its own, and its library wants the same order of all operations on all ranks.
        overlaps = self._tree and parameters[0].device.type == "cpu" and len(self._buckets) > 1
        self._thread = ThreadPoolExecutor(1, "reduction") if overlaps else None
        self._sums: list[Future[object]] = []
        self._lefts: Sequence[Gradients] | None = None
        self._complete = 0
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(partial(self._arrived, number))
            for number, parameter in enumerate(parameters)
        ]

    def expect(self, lefts: Sequence[Gradients]) -> None:
        """Take the gradients of the next backward pass, and add subtrees to their left, the nearest first."""
        self._lefts, self._complete = lefts, 0
        for bucket in self._buckets:
            bucket.missing = len(bucket.numbers)

    def _arrived(self, number: int, parameter: nn.Parameter) -> None:
        if self._lefts is None:
            return
        if parameter.grad is self._views[number]:
            raise RuntimeError(
                "a parameter got its gradient twice in one backward pass, as in re-entrant checkpointing: "
                "train.reduction: exact sums gradients as they come, and takes one of each"
            )
        self._place(number, parameter.grad)

    def _place(self, number: int, gradient: torch.Tensor | None) -> None:
        view = self._views[number]
        if gradient is None:
            view.zero_()
        else:
            # With zero, so that no sum is -0.0, whatever it was made of.
            torch.add(gradient, 0.0, out=view)
        for left in self._lefts or ():
            if (other := left[number]) is not None:
                view.add_(other)
        self._parameters[number].grad = view
        self._bucket_of[number].missing -= 1
        self._count_complete()

    def _count_complete(self) -> None:
        """Begin with the buckets that are complete, in the order of all ranks."""
        while self._complete < len(self._buckets) and self._buckets[self._complete].missing == 0:
            if self._thread is not None and self._complete < len(self._buckets) - 1:
                self._sums.append(self._thread.submit(self._sum, self._buckets[self._complete]))
            self._complete += 1

    def _sum(self, bucket: _Bucket) -> None:
        if self._tree is None:
            dist.all_reduce(bucket.values)
        else:
            self._tree(bucket.values, bucket.riding)

    def flush(self) -> None:
        """After the backward pass: the others had no part in it, or there was none."""
        for number, parameter in enumerate(self._parameters):
            if parameter.grad is None:
                self._place(number, None)
        self._lefts = None

    def finish(self, riding: np.ndarray) -> np.ndarray:
        """Leave the sums over the processes in every `.grad`; return that of `riding`. Collective."""
        if self._tree is None:
            gathered = self._group.begin_rows(riding)
            self._sum_all()
            return gathered()
        self._riding.copy_(torch.from_numpy(riding).view(-1))
        self._sum_all()
        return self._riding.cpu().numpy().reshape(riding.shape)

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
        """Leave no sum behind that the other ranks take part in, too."""
        for hook in self._hooks:
            hook.remove()
        if self._thread is None:
            return
        if self._complete == len(self._buckets):
            # The other ranks have begun with the same ones, or their end ends this.
            with suppress(RuntimeError):
                self._wait()
        self._thread.shutdown(wait=False, cancel_futures=True)


def _in_buckets(parameters: Sequence[nn.Parameter], most_bytes: int | None) -> Iterator[_Bucket]:
    """From the last parameter to the first, about the order of backward; all in one without a limit."""
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
    parameters: Sequence[nn.Parameter], buckets: Sequence[_Bucket], riding: int
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Give each bucket its memory, and the last one room for what rides.

    Returns the part of each parameter, in the parameter's shape, and that room, as double precision.
    """
    views, room = [torch.empty(0)] * len(parameters), torch.empty(0, dtype=torch.float64)
    for bucket in buckets:
        members = [parameters[number] for number in bucket.numbers]
        sizes = [member.numel() for member in members]
        length = sum(sizes)
        if bucket is buckets[-1] and riding:
            length += -length % ALIGNED
            bucket.riding = riding * room.itemsize // members[0].itemsize
        bucket.values = members[0].new_zeros(length + bucket.riding)
        if bucket.riding:
            room = bucket.values[length:].view(room.dtype)
        parts = bucket.values[: sum(sizes)].split(sizes)
        for number, member, part in zip(bucket.numbers, members, parts, strict=True):
            views[number] = part.view(member.shape)
    return views, room
