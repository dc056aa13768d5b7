"""Choosing the reduction that sums the gradients of a run, and the module, perhaps compiled, of the loss."""

from __future__ import annotations

import logging
import math
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from toolkit.config.schema import Experiment, Train
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import ExactReduction, FastReduction, Reduction, is_power_of_two
from toolkit.distributed.step_sync import sync_shape
from toolkit.errors import UserError
from toolkit.task import Task
from toolkit.training.assembly.data_parallel import wrap_data_parallel

#: Lowest compute capability that Triton supports.
_LOWEST_CAPABILITY = (7, 0)
log = logging.getLogger("toolkit")


def choose_reduction(model: nn.Module, experiment: Experiment, task: Task, group: Group) -> Reduction:
    """The reduction that `train.reduction` names. Collective.

    `auto` is exact on the CPU if the micro-batches of a step are a power of two, and fast otherwise.
    """
    train = experiment.train
    # dp has one process, and the reduction treats the model's gradients in the same way.
    module = wrap_data_parallel(model, train, group)
    if not _is_exact(train, group):
        compile_model(model, train, group)
        return FastReduction(model, group, module)
    if train.compile == "on":
        raise UserError(
            "train.compile is on, but train.reduction is exact on the CPU: set train.reduction=fast, or "
            "train.compile=auto"
        )
    if not is_power_of_two(group.world.size):
        log.warning(
            "%d processes are not a power of two: the samples are the same as on any other number, "
            "but sums are rounded differently, so the weights are not equal bit for bit",
            group.world.size,
        )
    numbers = math.prod(sync_shape(train.micro_batches, task.train_sums))
    return ExactReduction(model, group, module, piggyback=numbers)


def _is_exact(train: Train, group: Group) -> bool:
    if train.reduction != "auto" or group.device.type != "cpu":
        return train.reduction == "exact"
    if not is_power_of_two(train.micro_batches):
        log.warning(
            "train.reduction auto means fast here, because %d micro-batches are no power of two: on "
            "another number of processes the result differs in rounding and in random numbers (dropout)",
            train.micro_batches,
        )
        return False
    return True


def compile_model(model: nn.Module, train: Train, group: Group) -> None:
    """Have torch compile the model's forward and backward pass at its first call, if the run is set to.

    Collective: a rank that waits for one that compiles would count as hanging, so all compile or none.
    The model stays the same module, with the same parameter names. Sizes are symbolic from the start, so that
    batches of another length need no new kernels, except for convolutions.
    """
    why_not = why_not_compiled(model, train, group.device)
    if group.any(bool(why_not)):
        log.debug("the model is not compiled: %s", why_not or "another rank cannot")
        return
    log.info("torch compiles the model at its first step, which takes a minute or more")
    # Dynamo would split the graph at DDP's buckets: less is fused, and some releases fail or recompile.
    torch._dynamo.config.optimize_ddp = False
    # The forward of a torch.fx model has no __module__. A model that its user compiles keeps its settings.
    is_of_torch = (getattr(model.forward, "__module__", None) or "").startswith("torch.")
    if is_of_torch and not any(map(_is_compiled_by_user, model.modules())):
        # Dynamo skips a function of torch, such as forward of nn.Sequential, unless another one calls it.
        model._compiled_call_impl = torch.compile(_calling(model), dynamic=True)
    else:
        model.compile(dynamic=True)


def _is_compiled_by_user(module: nn.Module) -> bool:
    return module._compiled_call_impl is not None or isinstance(module, torch._dynamo.OptimizedModule)


def _calling(model: nn.Module) -> Callable[..., Any]:
    return lambda *args, **kwargs: model._call_impl(*args, **kwargs)


def is_compiled(model: nn.Module) -> bool:
    """Whether torch compiles this model, or modules of it, at its first call."""
    return any(each._compiled_call_impl is not None for each in model.modules())


def why_not_compiled(model: nn.Module, train: Train, device: torch.device) -> str:
    """Return why a run with fast reduction does not compile its model; empty if it compiles it."""
    if train.compile == "off":
        return "train.compile is off"
    if train.parallel == "dp":
        # Its copies of the model would call the compiled original.
        return "train.parallel is dp"
    if train.compile == "on":
        return ""
    if train.deterministic:
        return "train.deterministic is true"
    if device.type != "cuda":
        return "it computes on the CPU"
    if find_spec("triton") is None:
        return "Triton is not installed"
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        return "Triton finds no C compiler: gcc, clang or the one in CC"
    if torch.cuda.get_device_capability(device) < _LOWEST_CAPABILITY:
        return "Triton makes no kernels for this GPU"
    if any(isinstance(each, nn.Conv1d) for each in model.modules()):
        # Inductor fixes the strides in the backward pass of a convolution (torch 2.13).
        return "torch would compile its convolution again for each length of a batch"
    return ""
