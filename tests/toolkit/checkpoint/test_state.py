"""The training state beside the weights is restored exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.config.schema import Optimizer
from toolkit.errors import UserError
from toolkit.training.assembly.optimizers import build_optimizer


class Counting(nn.Module):
    """A model with a persistent and a non-persistent buffer."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        # Its numbers lie in memory column by column, as those of convolutions in channels_last do.
        self.linear.weight = nn.Parameter(torch.randn(3, 2).t())
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("seen", torch.zeros(1), persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        self.seen += len(values)
        return torch.as_tensor(self.norm(self.linear(values)))


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainState:
    return TrainState(Progress(), model, optimizer, torch.amp.GradScaler("cpu", enabled=False))


def new_state(kind: str = "adamw", seed: int = 0) -> TrainState:
    torch.manual_seed(seed)
    model = Counting()
    return state_of(model, build_optimizer(model, Optimizer(kind=kind, momentum=0.9)))


def advance(state: TrainState, steps: int, seed: int = 1) -> None:
    torch.manual_seed(seed)
    for _ in range(steps):
        state.optimizer.zero_grad()
        state.model(torch.randn(4, 3)).square().sum().backward()
        state.optimizer.step()
        state.progress.step += 1


def read_again(state: TrainState) -> dict[str, torch.Tensor]:
    """The tensors as a file gives them back: row by row."""
    found = state.training_tensors()
    return {name: value.clone(memory_format=torch.contiguous_format) for name, value in found.items()}


def tensors(state: TrainState) -> dict[str, torch.Tensor]:
    return {**state.model.state_dict(), **state.training_tensors()}


def assert_equal_after_training(first: TrainState, second: TrainState) -> None:
    advance(first, 3, seed=2)
    advance(second, 3, seed=2)
    found, expected = tensors(second), tensors(first)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_training_from_a_restored_state_gives_the_same_tensors(kind: str) -> None:
    first, second = new_state(kind), new_state(kind, seed=5)
    advance(first, 3)
    second.model.load_state_dict(first.model.state_dict())
    second.load_training_tensors(read_again(first))
    assert_equal_after_training(first, second)


class Counted(torch.optim.Optimizer):
    """Gradient descent that slows down by numbers that it counts, as some libraries' optimizers do."""

    def __init__(self, parameters: Iterable[nn.Parameter], memory: Any = 0) -> None:
        kept = {"owner": object(), "call": partial(max, 1), "nested": {"weights": [torch.ones(2)]}}
        own = {"done": 0, "scale": torch.ones(2), "steps": [], "ids": set(), "sums_of": np.zeros(2)}
        super().__init__(parameters, {"lr": 0.1, "memory": memory, **own, **kept})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["done"] += 1
            group["scale"] = group["scale"] / 2
            group["seen"] = group.get("seen", torch.zeros(())) + 1
            group["sums"] = group.get("sums", torch.zeros(2)) + 1
            for parameter in group["params"]:
                state = self.state[parameter]
                state["own"] = state.get("own", 0.5) * 0.9
                parameter -= group["lr"] * parameter.grad * state["own"] / group["done"]
                if group["memory"]:
                    state["memory"] = [parameter]


def counted(seed: int, memory: bool = False) -> TrainState:
    torch.manual_seed(seed)
    model = Counting()
    return state_of(model, Counted(model.parameters(), memory))


def test_numbers_and_tensors_in_optimizer_groups_are_restored() -> None:
    first, second = counted(0), counted(5)
    advance(first, 3)
    second.model.load_state_dict(first.model.state_dict())
    second.load_training_tensors(read_again(first))
    (group,) = second.optimizer.param_groups
    assert (group["done"], group["seen"].item()) == (3, 3)
    assert group["scale"].tolist() == [1 / 8, 1 / 8]
    assert group["sums"].tolist() == [3, 3]
    assert_equal_after_training(first, second)


def test_lists_in_the_state_or_groups_of_an_optimizer_are_refused() -> None:
    state = counted(0, memory=True)
    advance(state, 1)
    with pytest.raises(UserError, match="Counted keeps a list"):
        state.training_tensors()
    for name, add in {"steps": "append", "ids": "add"}.items():
        state = counted(0)
        getattr(state.optimizer.param_groups[0][name], add)(1)
        with pytest.raises(UserError, match=f"'{name}' of a group"):
            state.training_tensors()
    state = counted(0)
    state.optimizer.param_groups[0]["sums_of"] += 1
    with pytest.raises(UserError, match="'sums_of' of a group"):
        state.training_tensors()


def test_tensors_are_named_by_their_parameter() -> None:
    state = new_state()
    assert state.training_tensors().keys() == {"buffer/seen"}
    advance(state, 1)
    assert "optimizer/linear.weight/exp_avg" in state.training_tensors()
    assert "optimizer/linear.weight/step" in state.training_tensors()
    assert len(state.training_tensors()) == 1 + 3 * 4


def test_non_persistent_buffer_is_restored_if_its_shape_matches() -> None:
    state = new_state()
    advance(state, 3)
    other = new_state()
    other.load_training_tensors(state.training_tensors())
    assert other.model.get_buffer("seen").item() == 12
    other.load_training_tensors({"buffer/seen": torch.zeros(7)})
    assert other.model.get_buffer("seen").item() == 12


def test_state_before_the_first_step_restores_an_empty_optimizer_state() -> None:
    state, other = new_state(), new_state()
    advance(other, 2)
    other.load_training_tensors(state.training_tensors())
    assert not other.optimizer.state_dict()["state"]


def judged(*evaluations: tuple[float, float], goal: str = "max") -> Progress:
    """What remains of evaluations, each a metric and a loss, after steps 1, 2, …"""
    progress = Progress()
    for step, (value, loss) in enumerate(evaluations, start=1):
        progress.step = step
        progress.judge(value, loss, goal)
    return progress


def test_best_of_equal_metrics_is_the_evaluation_with_the_lowest_loss() -> None:
    progress = judged((0.5, 0.9), (0.8, 0.7), (0.8, 0.2), (0.8, 0.2), (0.8, 0.3), (0.7, 0.1))
    assert (progress.best_step, progress.best_value, progress.best_loss) == (3, 0.8, 0.2)
    assert judged((1.0, 0.9), (0.5, 0.4), (0.5, 0.3), goal="min").best_step == 3


def test_patience_counts_evaluations_without_a_better_metric() -> None:
    assert judged((0.8, 0.9), (0.8, 0.7), (0.8, 0.2)).since_best == 2


def test_an_evaluation_that_is_not_finite_is_never_best() -> None:
    assert judged((math.nan, 0.1)).best_step is None
    assert judged((0.8, 0.5), (math.inf, 0.1)).best_step == 1


@pytest.mark.parametrize("loss", [math.inf, math.nan])
def test_of_equal_metrics_a_finite_loss_is_better_than_one_that_is_not(loss: float) -> None:
    assert judged((0.8, loss), (0.8, 0.5), (0.8, loss)).best_step == 2


@pytest.mark.parametrize("loss", [math.inf, math.nan])
def test_a_loss_that_is_not_finite_does_not_change_which_metric_is_best(loss: float) -> None:
    progress = judged((0.5, 0.9), (0.9, loss), (0.7, 0.5))
    assert (progress.best_step, progress.since_best) == (2, 1)
    assert judged((0.9, loss), (0.7, 0.5), (0.7, 0.4)).since_best == 2
    assert judged((0.8, loss), (0.8, 0.5)).since_best == 1


def test_equal_metric_does_not_replace_a_best_of_unknown_loss() -> None:
    """Checkpoints that were written before the loss of the best was kept are resumed so."""
    stored = {"step": 4, "sums": {}, "best_value": 0.8, "best_step": 4, "since_best": 0, "chain": ""}
    progress = Progress()
    progress.restore(stored)
    progress.step = 8
    progress.judge(0.8, 0.01, "max")
    assert (progress.best_step, progress.best_loss) == (4, None)
    progress.judge(0.9, 0.01, "max")
    assert (progress.best_step, progress.best_loss) == (8, 0.01)


class Masters(torch.optim.Optimizer):
    """Keeps weights, and counts steps, more precisely than the parameters can."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 0.1})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for each in self.param_groups[0]["params"]:
            kept = self.state[each]
            kept.setdefault("master", each.detach().float())
            kept.setdefault("count", torch.tensor(1000))
            kept["master"] -= 0.1 * each.grad.float()
            kept["count"] += 1
            each.data.copy_(kept["master"])


def test_optimizer_state_keeps_its_dtype() -> None:
    def new() -> TrainState:
        model = nn.Linear(3, 2).bfloat16()
        return state_of(model, Masters(model.parameters()))

    first, second = new(), new()
    first.model(torch.randn(4, 3).bfloat16()).square().sum().backward()
    first.optimizer.step()
    second.load_training_tensors(read_again(first))
    kept, found = first.training_tensors(), second.training_tensors()
    assert {each.dtype for each in found.values()} == {torch.float32, torch.int64}
    assert all(torch.equal(found[name], kept[name]) for name in kept)
