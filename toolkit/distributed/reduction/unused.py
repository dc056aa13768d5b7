"""Parameters that the loss does not reach: DDP must search for them, and exact sums count them as zeros."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from toolkit.task import Task

#: Samples that are tried.
_FEW = 8


def leaves_some_out(task: Task, model: nn.Module, device: torch.device) -> bool:
    """Whether the loss of a few samples reaches only some of the parameters; True if the loss fails.

    Changes only the state of torch's random numbers.
    """
    with restoring_buffers(model):
        try:
            samples = np.arange(min(_FEW, len(task.splits["train"])))
            loss = task.loss(model, task.collate("train", samples, device))
            trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
            return any(each is None for each in torch.autograd.grad(loss.total, trainable, allow_unused=True))
        except Exception:
            # A faulty sample fails again in its step, which can name it and leave it out.
            return True


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
