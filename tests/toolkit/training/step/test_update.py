"""One step of the optimizer: gradients are means, and are clipped by their own norm."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.config.schema import LrScheduler, Optimizer
from toolkit.training.step.take_step import update


def test_gradient_norm_covers_only_parameters_of_the_optimizer() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    context: Any = SimpleNamespace(
        state=TrainState(Progress(), model, optimizer, scaler),
        experiment=SimpleNamespace(
            train=SimpleNamespace(clip_norm=1.0),
            lr_scheduler=LrScheduler(kind="constant"),
            optimizer=Optimizer(),
        ),
        schedule=SimpleNamespace(total_steps=1, steps_per_epoch=1),
        peak_rates=[0.5],
        group=SimpleNamespace(same=lambda norm: norm),
    )
    for each in model.parameters():
        # Of 100 samples: their mean has a norm below 1, and their sum one above it.
        each.grad = torch.full_like(each, 10.0)
    before = model[1].weight.clone()
    update(context, 100.0)
    torch.testing.assert_close(before - model[1].weight, torch.full((1, 2), 0.5 * 0.1))
