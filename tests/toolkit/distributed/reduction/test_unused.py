"""A trial step finds parameters that the loss does not use; it changes nothing and never raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from toolkit.distributed.reduction.unused import leaves_some_out
from toolkit.task import Loss

CPU = torch.device("cpu")


class Halves(nn.Module):
    """Two layers, the second of which may be left out, between which numbers are normalised."""

    def __init__(self, *, uses_both: bool) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)
        self.frozen = nn.Parameter(torch.zeros(1), requires_grad=False)
        self._uses_both = uses_both

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found = self.norm(self.first(inputs))
        return (self.second(found) if self._uses_both else found).square().sum()


class Samples:
    """As much of a task as a trial asks for; sample 2 may be at fault."""

    def __init__(self, *, is_damaged: bool = False) -> None:
        self.splits = {"train": range(5)}
        self._is_damaged = is_damaged

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> torch.Tensor:
        if self._is_damaged and 2 in indices:
            raise ValueError("sample 2 cannot be read")
        return torch.arange(3.0 * len(indices), device=device).view(-1, 3)

    def loss(self, model: nn.Module, batch: torch.Tensor) -> Loss:
        return Loss(total=model(batch), count=len(batch), tokens=len(batch), sums=torch.zeros(0))


@pytest.mark.parametrize("uses_both", [True, False])
def test_trial_finds_unused_parameters_and_leaves_the_model_unchanged(uses_both: bool) -> None:
    model: Any = Halves(uses_both=uses_both)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert leaves_some_out(Samples(), model, CPU) != uses_both
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_trial_accepts_buffers_that_forward_creates_or_enlarges() -> None:
    model: Any = Halves(uses_both=True)
    model.register_buffer("mask", None, persistent=False)
    model.register_buffer("places", torch.zeros(1), persistent=False)

    def enlarge(*_: object) -> None:
        model.mask, model.places = torch.ones(2), torch.arange(9.0)

    model.register_forward_pre_hook(enlarge)
    assert not leaves_some_out(Samples(), model, CPU)
    assert (len(model.mask), len(model.places)) == (2, 9)


def test_trial_does_not_raise_for_a_faulty_sample() -> None:
    assert leaves_some_out(Samples(is_damaged=True), Halves(uses_both=True), CPU)
