"""Choosing the reduction that sums the gradients of a run, and the module that the task's loss calls."""

from __future__ import annotations

import logging
import math

from torch import nn

from toolkit.config.schema import Experiment, Train
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import ExactReduction, FastReduction, Reduction, is_power_of_two
from toolkit.distributed.reduction.unused import leaves_some_out
from toolkit.distributed.step_sync import sync_shape
from toolkit.errors import UserError
from toolkit.task import Task
from toolkit.training.assembly.compile_model import compile_model
from toolkit.training.assembly.data_parallel import wrap_data_parallel

log = logging.getLogger("toolkit")


def choose_reduction(model: nn.Module, experiment: Experiment, task: Task, group: Group) -> Reduction:
    """The reduction that `train.reduction` names. Collective.

    `auto` is exact on the CPU if the micro-batches of a step are a power of two, and fast otherwise.
    """
    train = experiment.train
    # dp has one process, and the reduction treats the model's gradients in the same way.
    module = wrap_data_parallel(model, train, group)
    if not _is_exact(train, group):
        finds_unused = _finds_unused(model, train, task, group)
        compile_model(model, train, group.device)
        return FastReduction(model, group, finds_unused, module)
    _refuse_compiled(train)
    _warn_of_rounding(group)
    numbers = math.prod(sync_shape(train.micro_batches, task.train_sums))
    return ExactReduction(model, group, module, piggyback=numbers)


def _is_exact(train: Train, group: Group) -> bool:
    if train.reduction == "auto":
        return group.device.type == "cpu" and is_power_of_two(train.micro_batches)
    return train.reduction == "exact"


def _refuse_compiled(train: Train) -> None:
    if train.compile == "on":
        raise UserError(
            "train.compile is on, but train.reduction is exact on the CPU: set train.reduction=fast, or "
            "train.compile=auto"
        )


def _warn_of_rounding(group: Group) -> None:
    if not is_power_of_two(group.world.size):
        log.warning(
            "%d processes are not a power of two: the samples are the same as on any other number, "
            "the weights are equal within rounding, not bit for bit",
            group.world.size,
        )


def _finds_unused(model: nn.Module, train: Train, task: Task, group: Group) -> bool:
    """Whether DDP must look for parameters without a gradient in every step. Collective.

    The search takes time; without it a step in which a parameter gets no gradient fails.
    """
    if group.world.size == 1 or train.find_unused_parameters:
        return train.find_unused_parameters
    found: bool = group.agree(group.world.is_main and leaves_some_out(task, model, group.device))
    if found:
        log.info("some parameters get no gradient from the loss: DDP searches for them in every step")
    return found
