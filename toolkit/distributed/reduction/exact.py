"""The sum in one fixed tree: the same bytes on every power of two of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction.buckets import Buckets, Gradients
from toolkit.distributed.reduction.protocol import T, nothing
from toolkit.errors import UserError

#: Small enough that several buckets are summed during a backward pass, large enough for few messages.
_BUCKET_BYTES = 8 << 20


class ExactReduction:
    """One balanced binary tree over the logical ranks.

    Inside a process, pairs of equal subtrees are added like the carries of a binary counter. Between
    processes, buckets of gradients are added at the distances 1, 2, 4. With V logical ranks and W processes,
    both powers of two, the tree is the same for any W, and IEEE addition commutes, so all ranks hold the same
    sum. For any other W, an all-reduce adds the sums of the processes: same data, other rounding.

    module        the module that the loss calls; by default the model itself
    piggyback     number of float64 numbers that `finish` also sums
    bucket_bytes  approximate size of one message between processes
    """

    joins_parts = False

    def __init__(
        self,
        model: nn.Module,
        group: Group,
        module: nn.Module | None = None,
        piggyback: int = 0,
        bucket_bytes: int = _BUCKET_BYTES,
    ) -> None:
        self.module = module or model
        self.needs_backward = False
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        _check_single_kind(self._parameters)
        self._stack: list[tuple[int, Gradients]] = []
        self._piggyback: Callable[[], np.ndarray] = lambda: np.zeros(0)
        self._computed: Callable[[], None] = nothing
        self._buckets: Buckets | None = None
        if group.world.size > 1:
            for tensor in (*self._parameters, *model.buffers()):
                # broadcast sends memory in order and ignores strides.
                sent = tensor.data.contiguous()
                dist.broadcast(sent, src=0)
                tensor.data.copy_(sent)
            self._buckets = Buckets(self._parameters, group, bucket_bytes, piggyback)

    def start(self, piggyback: Callable[[], np.ndarray], computed: Callable[[], None] = nothing) -> None:
        self._piggyback, self._computed = piggyback, computed
        self._stack.clear()
        for parameter in self._parameters:
            parameter.grad = None

    def compute(self, function: Callable[..., T], *inputs: Any) -> T:
        return function(self.module, *inputs)

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        if not last:
            yield
            self._push(self._take())
            return
        # An uneven block leaves several subtrees; as in any block, they are added from the smallest up.
        pending_subtrees = [left for _, left in reversed(self._stack)]
        self._stack.clear()
        if self._buckets is None:
            yield
            self._sum(pending_subtrees)
        else:
            self._buckets.expect(pending_subtrees)
            yield
            self._buckets.flush()

    def _take(self) -> Gradients:
        """Take the gradients off the parameters."""
        gradients: Gradients = [parameter.grad for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None
        found = [gradient for gradient in gradients if gradient is not None]
        if len({gradient.untyped_storage().data_ptr() for gradient in found}) < len(found):
            # Autograd may give two parameters the same memory; adding in place would add twice.
            return [None if gradient is None else gradient.clone() for gradient in gradients]
        return gradients

    def _push(self, gradients: Gradients) -> None:
        height = 0
        while self._stack and self._stack[-1][0] == height:
            gradients = _add(self._stack.pop()[1], gradients)
            height += 1
        self._stack.append((height, gradients))

    def _sum(self, pending_subtrees: Sequence[Gradients]) -> None:
        """Set every `.grad` to the sum of its value and the pending subtrees."""
        total = self._take()
        for left in pending_subtrees:
            total = _add(left, total)
        if pending_subtrees:
            # Adding zero turns -0.0 into 0.0. A single logical rank has no sum that could differ.
            torch._foreach_add_([gradient for gradient in total if gradient is not None], 0.0)
        for parameter, gradient in zip(self._parameters, total, strict=True):
            parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient

    def finish(self) -> np.ndarray:
        self._computed()
        piggyback = self._piggyback()
        return piggyback if self._buckets is None else self._buckets.finish(piggyback)

    def close(self) -> None:
        if self._buckets is not None:
            self._buckets.close()


def _add(left: Gradients, right: Gradients) -> Gradients:
    """The sum of two subtrees, in the memory of the left one."""
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    if pairs:
        torch._foreach_add_([a for a, _ in pairs], [b for _, b in pairs])
    return [b if a is None else a for a, b in zip(left, right, strict=True)]


def _check_single_kind(parameters: Sequence[torch.Tensor]) -> None:
    kinds = {(p.dtype, p.device) for p in parameters}
    if len(kinds) != 1:
        found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds)) or "no parameters"
        raise UserError(f"train.reduction: exact needs parameters of one type on one device; found {found}")
