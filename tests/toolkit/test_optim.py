"""Optimizers leave out of weight decay what is named; learning rates follow from the step."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from toolkit.config.schema import LrScheduler, Optimizer
from toolkit.optim import build_optimizer, lr_factor


def trace(config: LrScheduler, total: int, steps_per_epoch: int = 4) -> list[float]:
    return [lr_factor(config, step, total, steps_per_epoch) for step in range(total)]


@pytest.mark.parametrize(
    "config, expected",
    [
        (LrScheduler(kind="constant"), [1, 1, 1, 1, 1, 1, 1, 1]),
        (LrScheduler(kind="constant", warmup=4), [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
        (LrScheduler(kind="linear"), [1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        (LrScheduler(kind="linear", warmup=0.5), [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]),
        (LrScheduler(kind="linear", warmup=4, final_factor=0.2), [0.25, 0.5, 0.75, 1, 1, 0.8, 0.6, 0.4]),
        (
            LrScheduler(kind="cosine", warmup=2),
            [0.5, 1, *(0.5 + 0.5 * math.cos(math.pi * step / 6) for step in range(6))],
        ),
        (
            LrScheduler(kind="cosine", final_factor=0.5),
            [0.75 + 0.25 * math.cos(math.pi * step / 8) for step in range(8)],
        ),
        (LrScheduler(kind="step", gamma=0.5), [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]),
        (
            LrScheduler(kind="step", gamma=0.1, step_epochs=0.5, warmup=2),
            [0.5, 1, 1, 1, 0.1, 0.1, 0.01, 0.01],
        ),
        (
            LrScheduler(kind="step", gamma=0.1, step_at=(0.5, 0.75), warmup=2),
            [0.5, 1, 1, 1, 0.1, 0.1, 0.01, 0.01],
        ),
        # Shares are of all steps, those of warm-up too, whatever an epoch has.
        (LrScheduler(kind="step", gamma=0.1, step_at=(0.3,), step_epochs=0.5), [1, 1, 1, *[0.1] * 5]),
        # A share of 1 is all steps, not one step.
        (LrScheduler(kind="linear", warmup=1), [1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1]),
    ],
)
def test_schedule_is_this_trace(config: LrScheduler, expected: list[float]) -> None:
    assert trace(config, 8) == pytest.approx(expected)


schedules = st.builds(
    LrScheduler,
    kind=st.sampled_from(["constant", "linear", "cosine", "step"]),
    warmup=st.floats(0, 1) | st.integers(2, 300).map(float),
    final_factor=st.floats(0, 1),
    step_epochs=st.floats(0.1, 5),
    step_at=st.none() | st.lists(st.floats(0.01, 1), max_size=5).map(tuple),
    # Ten drops a step over 200 steps: a smaller one would underflow to zero.
    gamma=st.floats(0.8, 1),
)


@given(config=schedules, total=st.integers(1, 200), steps_per_epoch=st.integers(1, 50))
def test_every_step_learns_and_none_exceeds_the_peak(
    config: LrScheduler, total: int, steps_per_epoch: int
) -> None:
    factors = trace(config, total, steps_per_epoch)
    assert all(0 < factor <= 1 + 1e-12 for factor in factors)


@given(config=schedules, total=st.integers(1, 200))
def test_after_warm_up_the_rate_never_rises(config: LrScheduler, total: int) -> None:
    factors = trace(config, total)
    peak = factors.index(max(factors))
    assert factors[:peak] == sorted(factors[:peak])
    assert all(
        after <= before + 1e-12 for before, after in zip(factors[peak:], factors[peak + 1 :], strict=False)
    )


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_schedule_reaches_its_final_factor_after_the_last_step(kind: str) -> None:
    """So the last step itself still learns."""
    config = LrScheduler(kind=kind, warmup=0.1, final_factor=0.3)
    assert lr_factor(config, 100, 100, 10) == pytest.approx(0.3)
    assert 0.3 < lr_factor(config, 99, 100, 10) < 0.32


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def names(optimizer: torch.optim.Optimizer, of: nn.Module) -> list[list[str]]:
    known = {parameter: name for name, parameter in of.named_parameters()}
    return [[known[parameter] for parameter in group["params"]] for group in optimizer.param_groups]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.LayerNorm = nn.LayerNorm(3)
        self.frozen = nn.Linear(3, 3).requires_grad_(False)


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_what_is_named_takes_no_weight_decay(kind: str) -> None:
    block = Block()
    optimizer = build_optimizer(block, Optimizer(kind=kind, weight_decay=0.1, lr=0.5))
    assert names(optimizer, block) == [
        ["linear.weight"],
        ["linear.bias", "LayerNorm.weight", "LayerNorm.bias"],
    ]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    assert {group["lr"] for group in optimizer.param_groups} == {0.5}


def test_order_of_parameters_is_that_of_the_model() -> None:
    block = model()
    optimizer = build_optimizer(block, Optimizer(no_decay=()))
    assert names(optimizer, block) == [[name for name, _ in block.named_parameters()]]


def test_settings_reach_the_optimizer() -> None:
    adam = build_optimizer(model(), Optimizer(kind="adam", betas=(0.8, 0.95), eps=1e-6))
    assert isinstance(adam, torch.optim.Adam)
    assert not isinstance(adam, torch.optim.AdamW)
    assert (adam.defaults["betas"], adam.defaults["eps"]) == ((0.8, 0.95), 1e-6)
    sgd = build_optimizer(model(), Optimizer(kind="sgd", momentum=0.9))
    assert isinstance(sgd, torch.optim.SGD)
    assert sgd.defaults["momentum"] == 0.9


def test_decay_shrinks_only_the_weights() -> None:
    block = Block()
    before = {name: value.clone() for name, value in block.named_parameters()}
    optimizer = build_optimizer(block, Optimizer(kind="adamw", weight_decay=0.1, lr=0.5))
    for parameter in block.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    changed = {name for name, value in block.named_parameters() if not torch.equal(value, before[name])}
    assert changed == {"linear.weight"}


_TORCHS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


@pytest.mark.parametrize("kind", _TORCHS)
def test_steps_are_those_of_torchs_own_optimizer(kind: str) -> None:
    config = Optimizer(kind=kind, lr=0.1, momentum=0.9, no_decay=())
    special = {"momentum": 0.9} if kind == "sgd" else {"betas": config.betas, "eps": config.eps}
    trained = []
    for own in (True, False):
        torch.manual_seed(0)
        model = nn.Linear(5, 3)
        options = {"lr": 0.1, "weight_decay": config.weight_decay, "fused": True, **special}
        optimizer = build_optimizer(model, config) if own else _TORCHS[kind](model.parameters(), **options)
        for number in range(5):
            model(torch.full((2, 5), float(number))).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            optimizer.load_state_dict(optimizer.state_dict())
        trained.append(model.weight.detach().clone())
    assert torch.equal(*trained)


def test_no_compiler_is_imported_to_take_a_step() -> None:
    program = """
import sys
import torch
from toolkit.config.schema import Optimizer
from toolkit.optim import build_optimizer
for kind in ("adam", "adamw", "sgd"):
    model = torch.nn.Linear(1, 1)
    optimizer = build_optimizer(model, Optimizer(kind=kind))
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
