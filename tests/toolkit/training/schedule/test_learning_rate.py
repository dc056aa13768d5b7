"""Learning rates are functions of the step."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import optimization

from toolkit.config.schema import LrScheduler
from toolkit.errors import UserError
from toolkit.training.schedule.learning_rate import lr_factor


def trace(config: LrScheduler, total: int, steps_per_epoch: int = 4) -> list[float]:
    return [lr_factor(config, step, total, steps_per_epoch) for step in range(total)]


@pytest.mark.parametrize(
    "config, expected",
    [
        (LrScheduler(kind="constant"), [1, 1, 1, 1, 1, 1, 1, 1]),
        (LrScheduler(kind="constant", warmup=4), [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
        (LrScheduler(kind="constant_with_warmup", warmup=4), [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
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
        # Shares refer to all steps, including warm-up, and do not depend on the length of an epoch.
        (LrScheduler(kind="step", gamma=0.1, step_at=(0.3,), step_epochs=0.5), [1, 1, 1, *[0.1] * 5]),
        # A share of 1 is all steps, not one step.
        (LrScheduler(kind="linear", warmup=1), [1 / 8, 2 / 8, 3 / 8, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 1]),
    ],
)
def test_schedule_equals_the_expected_factors(config: LrScheduler, expected: list[float]) -> None:
    assert trace(config, 8) == pytest.approx(expected)


@pytest.mark.parametrize("key", ["step_at", "step_epochs"])
def test_the_first_reduced_step_is_exactly_the_share(key: str) -> None:
    """0.55 * 100 is a little more than 55."""
    for percent in range(1, 100):
        share = percent / 100
        config = LrScheduler(kind="step", gamma=0.5, **{key: (share,) if key == "step_at" else share})
        factors = [lr_factor(config, step, 100, 100) for step in range(100)]
        assert factors.index(0.5) == percent


def test_each_reduction_by_epochs_is_at_its_multiple() -> None:
    for percent in range(1, 100):
        config = LrScheduler(kind="step", gamma=0.5, step_epochs=percent / 100)
        factors = [lr_factor(config, step, 1000, 100) for step in range(1000)]
        assert factors == [0.5 ** (step // percent) for step in range(1000)]


def test_a_reduction_by_epochs_is_not_earlier_in_long_epochs() -> None:
    config, long = LrScheduler(kind="step", gamma=0.5), 20_000_000
    found = [lr_factor(config, step, 3 * long, long) for step in (long - 1, long, 2 * long - 1, 2 * long)]
    assert found == [1.0, 0.5, 0.5, 0.25]


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
def test_factor_is_positive_and_at_most_the_peak(
    config: LrScheduler, total: int, steps_per_epoch: int
) -> None:
    factors = trace(config, total, steps_per_epoch)
    assert all(0 < factor <= 1 + 1e-12 for factor in factors)


@given(config=schedules, total=st.integers(1, 200))
def test_factor_never_rises_after_the_warm_up(config: LrScheduler, total: int) -> None:
    factors = trace(config, total)
    peak = factors.index(max(factors))
    assert factors[:peak] == sorted(factors[:peak])
    assert all(
        after <= before + 1e-12 for before, after in zip(factors[peak:], factors[peak + 1 :], strict=False)
    )


@pytest.mark.parametrize(
    "kind, arguments, of_transformers",
    [
        ("constant_with_warmup", {}, "get_constant_schedule_with_warmup"),
        ("polynomial", {"lr_end": 0.02, "power": 2.0}, "get_polynomial_decay_schedule_with_warmup"),
        ("cosine_with_restarts", {"num_cycles": 3}, "get_cosine_with_hard_restarts_schedule_with_warmup"),
        ("cosine_with_min_lr", {"min_lr_rate": 0.1}, "get_cosine_with_min_lr_schedule_with_warmup"),
        ("inverse_sqrt", {}, "get_inverse_sqrt_schedule"),
        ("warmup_stable_decay", {"num_decay_steps": 6}, "get_wsd_schedule"),
    ],
)
def test_schedules_of_transformers_equal_the_originals_after_warm_up(
    kind: str, arguments: dict[str, object], of_transformers: str
) -> None:
    """During warm-up ours is one step ahead, as theirs begins at zero."""
    total, lr = 20, 0.5
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    make = getattr(optimization, of_transformers)
    sizes = {"num_warmup_steps": 4} | (
        {} if kind in ("inverse_sqrt", "constant_with_warmup") else {"num_training_steps": total}
    )
    theirs = make(optimizer, **sizes, **arguments)
    rates = []
    for _ in range(total):
        rates.append(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()
    config = LrScheduler(kind=kind, warmup=4, arguments=arguments)
    ours = [lr * lr_factor(config, step, total, 4, lr) for step in range(total)]
    assert ours[:4] == pytest.approx([lr / 4, lr / 2, 3 * lr / 4, lr])
    assert ours[4:] == pytest.approx(rates[4:])


def test_arguments_that_transformers_refuses_raise_a_user_error() -> None:
    config = LrScheduler(kind="warmup_stable_decay", arguments={"num_decay_steps": 2, "decay_type": "x"})
    with pytest.raises(UserError, match="warmup_stable_decay refuses its arguments"):
        lr_factor(config, 0, 10, 10)
