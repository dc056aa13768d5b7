"""train.parallel: dp, in which one process uses all GPUs that it sees."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import nn

from toolkit.config.schema import Train
from toolkit.distributed.process_group import Group
from toolkit.errors import UserError
from toolkit.training.numerics.arithmetic import autocast_dtype

log = logging.getLogger("toolkit")


def check_parallel(parallel: str, world_size: int) -> None:
    """Raise UserError if train.parallel is for one process but there are several."""
    if parallel in ("dp", "none") and world_size > 1:
        raise UserError(
            f"train.parallel is {parallel}, which is for one process, but {world_size} were started: start "
            "one (`stk run --procs 1`, resources.tasks_per_node=1), or set train.parallel to ddp"
        )


def wrap_data_parallel(module: nn.Module, train: Train, group: Group) -> nn.Module:
    """The module to call in place of a model; for dp, it splits each micro-batch over all visible GPUs.

    The gradients arrive in the model's own parameters, equal to those of one device within rounding.
    """
    devices = visible_devices(group)
    if train.parallel != "dp":
        if group.world.size == 1 and devices > 1:
            log.info("training uses one of %d GPUs: `stk run --gpus %d` uses all of them", devices, devices)
        return module
    if devices < 2:
        log.info("train.parallel: dp on %s is the same as none", group.device)
        return module
    log.warning(
        "train.parallel: dp copies the model to %d GPUs in every micro-batch and computes from one Python "
        "process; ddp, a process for each GPU (`stk run --gpus %d`), is faster and gives the same model",
        devices,
        devices,
    )
    replicated = InPrecision(module, group.device.type, autocast_dtype(train.precision, group.device))
    return nn.DataParallel(replicated, device_ids=list(range(devices)))


class InPrecision(nn.Module):
    """A module with a fixed autocast precision, independent of the calling thread.

    DataParallel calls each replica in a separate thread and enables autocast there, but the autocast dtype is
    a per-thread setting, and fp16 in a new thread.
    """

    def __init__(self, module: nn.Module, device_type: str, precision: torch.dtype | None) -> None:
        super().__init__()
        self.module = module
        self._device_type, self._precision = device_type, precision

    def forward(self, *inputs: Any, **named: Any) -> Any:
        with torch.autocast(self._device_type, self._precision, enabled=self._precision is not None):
            return self.module(*inputs, **named)


def visible_devices(group: Group) -> int:
    """Number of GPUs that this process can use."""
    return torch.cuda.device_count() if group.device.type == "cuda" else 0
