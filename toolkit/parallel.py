"""What one process computes on: one device, or, without a launcher, all GPUs that it sees."""

from __future__ import annotations

import logging

import torch
from torch import nn

from toolkit.config.schema import Train
from toolkit.distributed import Group
from toolkit.errors import UserError

log = logging.getLogger("toolkit")


def check_parallel(parallel: str, world_size: int) -> None:
    """Raise UserError where train.parallel is for one process and there are several."""
    if parallel in ("dp", "none") and world_size > 1:
        raise UserError(
            f"train.parallel is {parallel}, which is for one process, but {world_size} were started: start "
            "one (`stk run --procs 1`, resources.tasks_per_node=1), or set train.parallel to ddp"
        )


def spread(module: nn.Module, train: Train, group: Group) -> nn.Module:
    """The module to call in place of a model: one that cuts each micro-batch over all visible GPUs, for dp.

    Its gradients arrive in the model's own parameters, summed as one device would sum them but for rounding.
    """
    devices = visible_devices(group)
    if train.parallel != "dp":
        if group.world.size == 1 and devices > 1:
            log.info("computes on one of %d GPUs: `stk run --gpus %d` takes all of them", devices, devices)
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
    return nn.DataParallel(module, device_ids=list(range(devices)))


def visible_devices(group: Group) -> int:
    """GPUs that this process could compute on."""
    return torch.cuda.device_count() if group.device.type == "cuda" else 0
