"""The sum by DDP: fast; its rounding depends on the number of processes."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction.protocol import T, nothing
from toolkit.errors import UserError

#: DDP's words if the hook of a parameter is called twice.
_TWICE = "mark a variable ready only once"


class FastReduction:
    """DDP: buckets, overlapped with the last backward pass; the rounding depends on the world size.

    On the CPU the control vector is appended to DDP's first bucket, which is small: a separate all-reduce
    would cost one more context switch. On a GPU it is sent separately after the gradients. Its numbers are
    read there when the sum of the last bucket has begun. Earlier, the host would wait for the device in the
    middle of the pass. Later, it would also wait for other ranks, because DDP's backward waits for a sum of
    the used parameters.

    module: called in place of the model if there is one process; by default the model itself.
    """

    joins_parts = True

    def __init__(self, model: nn.Module, group: Group, module: nn.Module | None = None) -> None:
        self._model = model
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._group = group
        self._piggyback: Callable[[], np.ndarray] = lambda: np.zeros(0)
        self._computed: Callable[[], None] = nothing
        self._packed: _PackedBucket | None = None
        self._sums: list[dist.Work] = []
        self._size, self._summed = sum(each.numel() for each in self._parameters), 0
        self.module = module or model
        self.needs_backward = group.world.size > 1
        self._ddp: DistributedDataParallel | None = None
        if group.world.size > 1:
            self._ddp = _ddp(_Computation(model), group)
            self._ddp.register_comm_hook(
                None, lambda state, bucket: self._begin(bucket.buffer(), last=bucket.is_last())
            )

    def start(self, piggyback: Callable[[], np.ndarray], computed: Callable[[], None] = nothing) -> None:
        self._piggyback, self._computed = piggyback, computed
        self._summed = 0
        self._model.zero_grad(set_to_none=True)

    def compute(self, function: Callable[..., T], *inputs: Any) -> T:
        if self._ddp is None:
            return function(self.module, *inputs)
        # In a closure: DDP would copy inputs, and rebuild dictionaries and lists.
        found: T = self._ddp(lambda model: function(model, *inputs))
        return found

    @contextmanager
    def micro_batch(self, last: bool) -> Iterator[None]:
        with nullcontext() if last or self._ddp is None else self._ddp.no_sync():
            try:
                yield
            except RuntimeError as error:
                if _TWICE not in str(error):
                    raise
                raise UserError(
                    "a parameter got its gradient twice in one backward pass, which train.reduction=fast "
                    "does not support. If the model checkpoints activations, do it with use_reentrant=False. "
                    "Otherwise set train.reduction=exact"
                ) from error

    def _begin(self, bucket: torch.Tensor, *, last: bool) -> torch.futures.Future[torch.Tensor]:
        """Start the sum of a bucket. DDP itself would compute the mean, one more pass over the gradients.

        DDP gets a finished future: it sets every `.grad` to a view of the bucket, and `finish` waits.
        """
        sent, self._summed = bucket, self._summed + len(bucket)
        if not self._sums and not bucket.is_cuda:
            self._packed = _PackedBucket(bucket, self._piggyback())
            sent = self._packed.values
        work = dist.all_reduce(sent, async_op=True)
        assert work is not None
        self._sums.append(work)
        if last:
            self._computed()
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[bucket.device] if bucket.is_cuda else None
        )
        done.set_result(bucket)
        return done

    def finish(self) -> np.ndarray:
        is_incomplete = self._ddp is not None and self._summed < self._size
        if self._ddp is None or is_incomplete:
            # No hook of the last bucket has called it.
            self._computed()
        if is_incomplete:
            # DDP waits for a gradient of every parameter that any output reaches, and reports nothing.
            raise UserError(
                "Loss.count or Loss.sums has a gradient of parameters that Loss.total does not reach, so the "
                "gradients were not summed over the processes: detach() them"
            )
        packed, self._packed = self._packed, None
        gathered = packed.unpack if packed else self._group.begin_rows(self._piggyback())
        sums, self._sums = self._sums, []
        for each in sums:
            each.wait()
        for parameter in self._parameters:
            # As in an exact sum: a parameter that no loss reaches gets a zero gradient, so it decays.
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return gathered()

    def close(self) -> None:
        # DDP owns the process group too. As the last owner it would free it with the GIL held, while a
        # thread of gloo may wait for the GIL to drop the last all-reduce: a deadlock (torch 2.13).
        self._ddp = None
        self._sums.clear()
        gc.collect()


class _Computation(nn.Module):
    """Calls a function with the model itself, so that DDP tracks everything that it computes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(self, function: Callable[[nn.Module], Any]) -> Any:
        return function(self._model)


class _PackedBucket:
    """A bucket with appended rows of numbers; each row is zero on all ranks but one.

    Each byte becomes one element: every gradient dtype holds the integers up to 255 exactly, and adding
    zeros does not change them.
    """

    def __init__(self, bucket: torch.Tensor, rows: np.ndarray) -> None:
        self._bucket, self._shape = bucket, rows.shape
        packed_rows = torch.from_numpy(rows.reshape(-1).view(np.uint8))
        self.values = torch.cat([bucket, packed_rows.to(bucket.dtype)])

    def unpack(self) -> np.ndarray:
        """Copy the sums into the bucket; return the rows of all ranks."""
        length = len(self._bucket)
        self._bucket.copy_(self.values[:length])
        found: np.ndarray = self.values[length:].to(torch.uint8).numpy().view(np.float64)
        return found.reshape(self._shape)


def _ddp(model: nn.Module, group: Group) -> DistributedDataParallel:
    with warnings.catch_warnings():
        # The successor of broadcast_buffers, which torch 2.13 recommends, is unknown to older releases.
        warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
        return DistributedDataParallel(
            model,
            device_ids=[group.device] if group.device.type == "cuda" else None,
            broadcast_buffers=False,
            gradient_as_bucket_view=True,
            # Otherwise DDP makes other buckets after the first step of each attempt, and from three processes
            # the place of a gradient in its bucket changes the rounding: a resumed run would differ.
            find_unused_parameters=True,
        )
