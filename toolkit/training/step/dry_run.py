"""The loss of some samples outside of training: to find faulty ones, and to measure the cost of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from toolkit.training.context import TrainContext
from toolkit.training.numerics.rng import seed_everything

Numbers = dict[tuple[str, str], int | float]


def dry_run(context: TrainContext, samples: np.ndarray) -> float:
    """Compute the loss of some samples and its gradient on this rank; change no state."""
    model = context.state.model
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with restoring(model):
        total = forward(context, samples)
        torch.autograd.grad(total, weights, allow_unused=True)
    return float(total.detach())


def forward(context: TrainContext, samples: np.ndarray) -> torch.Tensor:
    """Return the loss of some samples, summed; the same at each call in a step."""
    context.activity.heartbeat()
    seed_everything(context.experiment.seed, context.state.progress.step)
    batch = context.task.collate("train", samples, context.group.device)
    with context.autocast():
        return context.task.loss(context.state.model, batch).total


def numbers_of(model: nn.Module) -> Numbers:
    """The numbers in attributes of the modules, by names of module and attribute: no checkpoint has them."""
    return {
        (name, key): value
        for name, module in model.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, int | float) and key != "training"
    }


@contextmanager
def restoring(model: nn.Module) -> Iterator[None]:
    """Restore buffers and numbers of a model at the end, except caches: buffers added or enlarged."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    numbers, modules = numbers_of(model), dict(model.named_modules())
    try:
        yield
    finally:
        for (name, key), value in numbers.items():
            setattr(modules[name], key, value)
        for name, buffer in model.named_buffers():
            if name in before and before[name].shape == buffer.shape:
                buffer.copy_(before[name])
