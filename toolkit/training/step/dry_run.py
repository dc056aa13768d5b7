"""The loss of some samples outside of training: to find faulty ones, and to measure the cost of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from toolkit.training.context import TrainContext
from toolkit.training.numerics.rng import seed_everything


def dry_run(context: TrainContext, samples: np.ndarray) -> float:
    """Compute the loss of some samples and its gradient on this rank; change no state."""
    context.activity.heartbeat()
    model = context.state.model
    seed_everything(context.experiment.seed, context.state.progress.step)
    batch = context.task.collate("train", samples, context.group.device)
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with restoring_buffers(model):
        with context.autocast():
            loss = context.task.loss(model, batch)
        torch.autograd.grad(loss.total, weights, allow_unused=True)
    return float(loss.total.detach())


@contextmanager
def restoring_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers of a model at the end, except caches: those that were added or enlarged."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        yield
    finally:
        for name, buffer in model.named_buffers():
            if name in before and before[name].shape == buffer.shape:
                buffer.copy_(before[name])
