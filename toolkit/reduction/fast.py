"""The sum by DDP: fast, and equal within rounding on any number of processes."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from toolkit.distributed import Group


class FastReduction:
    """DDP: buckets, overlapped with the last backward pass; equal within rounding on any world.

    module: what the loss calls where there is one process; the model itself unless told.
    """

    def __init__(
        self, model: nn.Module, group: Group, find_unused_parameters: bool, module: nn.Module | None = None
    ) -> None:
        self._model = model
        self._group = group
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

    def finish(self, riding: np.ndarray) -> np.ndarray:
        gathered = self._group.begin_rows(riding)
        # DDP leaves the mean over processes; the loop wants the sum over samples.
        if self._size > 1:
            for parameter in self._model.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(self._size)
        return gathered()

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
