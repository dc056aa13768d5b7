"""The update at the end of a step: learning rate, mean of the gradients, clipping, optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import nn

from toolkit.config.library_arguments import OWN
from toolkit.training.context import TrainContext
from toolkit.training.schedule.learning_rate import lr_factor


class Same(Protocol):
    """The part of toolkit.distributed.process_group.Group that clipping needs."""

    def same(self, tensor: torch.Tensor) -> torch.Tensor: ...


def update(context: TrainContext, count: float) -> None:
    """Set the learning rate and step the optimizer. Collective if the ranks' devices differ.

    count  divisor of the summed gradients; with 0 (a step without samples), no weight changes
    """
    _set_learning_rate(context)
    if count > 0:
        _step_optimizer(context, count)
    context.state.progress.step += 1


def _set_learning_rate(context: TrainContext) -> None:
    factor = _lr_factor(context)
    for group, peak in zip(context.state.optimizer.param_groups, context.peak_rates, strict=True):
        group["lr"] = peak * factor


def _lr_factor(context: TrainContext) -> float:
    config, schedule, step = context.experiment.lr_scheduler, context.schedule, context.state.progress.step
    if config.kind == OWN:
        task: Any = context.task
        return float(task.schedule(step, schedule.total_steps))
    lr = context.experiment.optimizer.lr
    return lr_factor(config, step, schedule.total_steps, schedule.steps_per_epoch, lr)


def _step_optimizer(context: TrainContext, count: float) -> None:
    """Divide the summed gradients once by the global count, clip, step."""
    state, clip_norm = context.state, context.experiment.train.clip_norm
    state.scaler.unscale_(state.optimizer)
    # From the optimizer's lists: model.parameters() would walk through all modules.
    parameters = [each for group in state.optimizer.param_groups for each in group["params"]]
    torch._foreach_mul_([each.grad for each in parameters if each.grad is not None], 1.0 / count)
    if clip_norm is not None:
        used = set(parameters)
        # In the model's order, because the order changes the last bits of the norm.
        clip([each for each in state.model.parameters() if each in used], clip_norm, context.group)
    state.scaler.step(state.optimizer)
    state.scaler.update()


def clip(parameters: Sequence[nn.Parameter], largest: float, group: Same) -> None:
    """Clip the gradient to a norm, by the same factor on all ranks. Collective if their devices differ.

    The ranks hold the same gradient, but different kinds of GPUs sum its norm in different orders, and the
    weights would drift apart.
    """
    norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
    nn.utils.clip_grads_with_norm_(parameters, largest, group.same(norm))
