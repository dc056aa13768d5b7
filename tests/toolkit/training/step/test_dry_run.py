"""A pass outside of training changes no buffer."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from toolkit.training.step.dry_run import restoring_buffers


def test_buffers_are_restored_except_those_that_forward_creates_or_enlarges() -> None:
    model: Any = nn.BatchNorm1d(3)
    model.register_buffer("mask", None, persistent=False)
    model.register_buffer("places", torch.zeros(1), persistent=False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with restoring_buffers(model):
        model(torch.arange(6.0).view(2, 3))
        model.mask, model.places = torch.ones(2), torch.arange(9.0)
        assert not torch.equal(model.running_mean, before["running_mean"])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (len(model.mask), len(model.places)) == (2, 9)
