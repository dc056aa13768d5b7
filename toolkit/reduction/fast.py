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

    On the CPU what rides is summed during the last backward pass: with more processes than cores, to wait for
    the others a second time costs slices of the scheduler's. On a GPU it goes last: to know it earlier, the
    host would have to wait for the device amid the work that it hands over.

    module: what the loss calls where there is one process; the model itself unless told.
    """

    def __init__(
        self, model: nn.Module, group: Group, find_unused_parameters: bool, module: nn.Module | None = None
    ) -> None:
        self._model = model
        self._group = group
        self._riding: Callable[[], np.ndarray] = lambda: np.zeros(0)
        self._gathered: Callable[[], np.ndarray] | None = None
        self._sums: list[dist.Work] = []
        self.module = module or model
        self.needs_backward = group.world.size > 1
        if group.world.size > 1:
            self.module = _ddp(model, group, find_unused_parameters)
            self.module.register_comm_hook(None, lambda state, bucket: self._begin(bucket.buffer()))

    def start(self, riding: Callable[[], np.ndarray]) -> None:
        self._riding, self._gathered = riding, None
        self._model.zero_grad(set_to_none=True)

    @contextmanager
    def leaf(self, last: bool) -> Iterator[None]:
        silent = self.needs_backward and not last
        with self.module.no_sync() if silent else nullcontext():  # type: ignore[operator]
            yield

    def _begin(self, values: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        """Begin with the sum of a bucket; DDP itself would make the mean of it, a pass over the gradients.

        DDP is told that all is done: it leaves in every `.grad` a view of the bucket, and `finish` waits.
        """
        work = dist.all_reduce(values, async_op=True)
        assert work is not None
        self._sums.append(work)
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[values.device] if values.is_cuda else None
        )
        done.set_result(values)
        return done

    def ride(self) -> None:
        if self._group.device.type == "cpu":
            self._gathered = self._group.begin_rows(self._riding())

    def finish(self) -> np.ndarray:
        gathered = self._gathered or self._group.begin_rows(self._riding())
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
