"""Adding up the gradients of a step's logical ranks, in one fixed tree or by DDP's all-reduce.

Both leave in `.grad`, on every rank, the sum over all logical ranks; the loop divides once by the
global count. A process carries a contiguous block of logical ranks.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from toolkit.distributed import Group
from toolkit.errors import UserError


def block(rank: int, size: int, logical_ranks: int) -> range:
    """The logical ranks that a process carries: contiguous, sizes differing by at most one."""
    return range(rank * logical_ranks // size, (rank + 1) * logical_ranks // size)


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


class Reduction(Protocol):
    """How one step's gradients become one sum.

    module          what the task's loss calls in place of the model
    needs_backward  whether every rank must run a backward pass even without samples
    """

    module: nn.Module
    needs_backward: bool

    def start(self) -> None:
        """Begin a step: no gradient yet."""

    def leaf(self, last: bool) -> AbstractContextManager[None]:
        """Surround the backward passes of one logical rank; `last` of this process in the step."""

    def finish(self) -> None:
        """Leave the global sum in every `.grad`. Collective."""

    def close(self) -> None:
        """Let go of the process group; to be called before it is destroyed."""


class FastReduction:
    """DDP: buckets, overlapped with the last backward pass; equal within rounding on any world.

    module: what the loss calls where there is one process; the model itself unless told.
    """

    def __init__(
        self, model: nn.Module, group: Group, find_unused_parameters: bool, module: nn.Module | None = None
    ) -> None:
        self._model = model
        self._size = group.world.size
        self.module = (module or model) if self._size == 1 else _ddp(model, group, find_unused_parameters)
        self.needs_backward = self._size > 1

    def start(self) -> None:
        self._model.zero_grad(set_to_none=True)

    @contextmanager
    def leaf(self, last: bool) -> Iterator[None]:
        silent = self._size > 1 and not last
        with self.module.no_sync() if silent else nullcontext():  # type: ignore[operator]
            yield

    def finish(self) -> None:
        # DDP leaves the mean over processes; the loop wants the sum over samples.
        if self._size > 1:
            for parameter in self._model.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(self._size)

    def close(self) -> None:
        # DDP owns the process group too. As the last owner it would free it with the GIL held, while a
        # thread of gloo may wait for the GIL to drop the last all-reduce: a deadlock (torch 2.13).
        self.module = self._model
        gc.collect()


def _ddp(model: nn.Module, group: Group, find_unused_parameters: bool) -> DistributedDataParallel:
    with warnings.catch_warnings():
        # The successor of broadcast_buffers, which torch 2.13 recommends, is unknown to older releases.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        return DistributedDataParallel(
            model,
            device_ids=[group.device] if group.device.type == "cuda" else None,
            broadcast_buffers=False,
            gradient_as_bucket_view=True,
            find_unused_parameters=find_unused_parameters,
        )


class ExactReduction:
    """One balanced binary tree over the logical ranks: the same bytes on every power of two.

    Inside a process pairs of equal subtrees are added like the carries of a binary counter; between
    processes by recursive doubling. With V logical ranks and W processes, both powers of two, that
    is the same tree whatever W is, and IEEE addition commutes, so all ranks hold the same sum.
    Another W adds the processes' sums by an all-reduce: same data, other rounding.
    module: what the loss calls; the model itself unless told.
    """

    def __init__(self, model: nn.Module, group: Group, module: nn.Module | None = None) -> None:
        self.module = module or model
        self.needs_backward = False
        self._world = group.world
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._dtype, self._device = _single_kind(self._parameters)
        self._length = sum(p.numel() for p in self._parameters)
        self._free: list[torch.Tensor] = []
        self._stack: list[tuple[int, torch.Tensor]] = []
        self._received: torch.Tensor | None = None
        if group.world.size > 1:
            for tensor in (*self._parameters, *model.buffers()):
                dist.broadcast(tensor.data, src=0)

    def start(self) -> None:
        self._free += [buffer for _, buffer in self._stack]
        self._stack.clear()

    @contextmanager
    def leaf(self, last: bool) -> Iterator[None]:
        buffer = self._free.pop() if self._free else self._new_buffer()
        buffer.zero_()
        self._point_gradients_at(buffer)
        yield
        self._push(buffer)

    def _new_buffer(self) -> torch.Tensor:
        return torch.empty(self._length, dtype=self._dtype, device=self._device)

    def _push(self, buffer: torch.Tensor) -> None:
        height = 0
        while self._stack and self._stack[-1][0] == height:
            _, left = self._stack.pop()
            left.add_(buffer)
            self._free.append(buffer)
            buffer, height = left, height + 1
        self._stack.append((height, buffer))

    def finish(self) -> None:
        # Of an uneven block several subtrees are left; from the smallest up, as in any block.
        total = self._stack[-1][1]
        for _, left in reversed(self._stack[:-1]):
            left.add_(total)
            total = left
        if is_power_of_two(self._world.size):
            self._recursive_doubling(total)
        elif self._world.size > 1:
            dist.all_reduce(total)
        self._point_gradients_at(total)

    def close(self) -> None:
        pass

    def _recursive_doubling(self, total: torch.Tensor) -> None:
        distance = 1
        while distance < self._world.size:
            if self._received is None:
                self._received = torch.empty_like(total)
            partner = self._world.rank ^ distance
            exchange = [
                dist.P2POp(dist.isend, total, partner),
                dist.P2POp(dist.irecv, self._received, partner),
            ]
            for request in dist.batch_isend_irecv(exchange):
                request.wait()
            total.add_(self._received)
            distance *= 2

    def _point_gradients_at(self, buffer: torch.Tensor) -> None:
        offset = 0
        for parameter in self._parameters:
            parameter.grad = buffer[offset : offset + parameter.numel()].view_as(parameter)
            offset += parameter.numel()


def _single_kind(parameters: Sequence[torch.Tensor]) -> tuple[torch.dtype, torch.device]:
    kinds = {(p.dtype, p.device) for p in parameters}
    if len(kinds) != 1:
        found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds)) or "no parameters"
        raise UserError(f"train.reduction: exact needs parameters of one type on one device; found {found}")
    return kinds.pop()
