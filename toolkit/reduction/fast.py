"""The sum by DDP: fast, and equal within rounding on any number of processes."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from toolkit.distributed import Group


class FastReduction:
    """DDP: buckets, overlapped with the last backward pass; equal within rounding on any world.

    On the CPU the first bucket, which DDP keeps small, takes along what rides: where processes share cores,
    one more wait for the others costs slices of the scheduler's. On a GPU it goes by itself, last: to know it
    earlier, the host would have to wait for the device amid the work that it hands over.

    module: what the loss calls where there is one process; the model itself unless told.
    """

    def __init__(
        self, model: nn.Module, group: Group, find_unused_parameters: bool, module: nn.Module | None = None
    ) -> None:
        self._model = model
        self._group = group
        self._riding: Callable[[], np.ndarray] = lambda: np.zeros(0)
        self._loaded: _Loaded | None = None
        self._sums: list[dist.Work] = []
        self.module = module or model
        self.needs_backward = group.world.size > 1
        if group.world.size > 1:
            self.module = _ddp(model, group, find_unused_parameters)
            self.module.register_comm_hook(None, lambda state, bucket: self._begin(bucket.buffer()))

    def start(self, riding: Callable[[], np.ndarray]) -> None:
        self._riding = riding
        self._model.zero_grad(set_to_none=True)

    @contextmanager
    def leaf(self, last: bool) -> Iterator[None]:
        silent = self.needs_backward and not last
        with self.module.no_sync() if silent else nullcontext():  # type: ignore[operator]
            yield

    def _begin(self, bucket: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        """Begin with the sum of a bucket; DDP itself would make the mean of it, a pass over the gradients.

        DDP is told that all is done: it leaves in every `.grad` a view of the bucket, and `finish` waits.
        """
        sent = bucket
        if not self._sums and not bucket.is_cuda:
            self._loaded = _Loaded(bucket, self._riding())
            sent = self._loaded.values
        work = dist.all_reduce(sent, async_op=True)
        assert work is not None
        self._sums.append(work)
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[bucket.device] if bucket.is_cuda else None
        )
        done.set_result(bucket)
        return done

    def finish(self) -> np.ndarray:
        loaded, self._loaded = self._loaded, None
        gathered = loaded.unload if loaded else self._group.begin_rows(self._riding())
        sums, self._sums = self._sums, []
        for each in sums:
            each.wait()
        return gathered()

    def close(self) -> None:
        # DDP owns the process group too. As the last owner it would free it with the GIL held, while a
        # thread of gloo may wait for the GIL to drop the last all-reduce: a deadlock (torch 2.13).
        self.module = self._model
        self._sums.clear()
        gc.collect()


class _Loaded:
    """A bucket with rows of numbers at its end, of which each is zero on all ranks but one.

    They travel byte by byte: any type of gradients holds whole numbers up to 255, and adding zeros leaves
    them as they are.
    """

    def __init__(self, bucket: torch.Tensor, rows: np.ndarray) -> None:
        self._bucket, self._shape = bucket, rows.shape
        cargo = torch.from_numpy(rows.reshape(-1).view(np.uint8))
        self.values = torch.cat([bucket, cargo.to(bucket.dtype)])

    def unload(self) -> np.ndarray:
        """Give the bucket its sums; return the rows of all ranks."""
        length = len(self._bucket)
        self._bucket.copy_(self.values[:length])
        found: np.ndarray = self.values[length:].to(torch.uint8).numpy().view(np.float64)
        return found.reshape(self._shape)


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
