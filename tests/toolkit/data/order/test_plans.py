"""What holds for the plan of every epoch, whether its steps are of samples or of tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.order.sample_order import EpochPlan, plan_epoch
from toolkit.data.order.token_budget import plan_tokens

Planner = Callable[..., EpochPlan]
Lengths = npt.NDArray[np.integer]

_KEY: dict[str, Any] = {
    "micro_batches": st.integers(1, 24),
    "seed": st.integers(0, 2**63 - 1),
    "epoch": st.integers(0, 1000),
    "fingerprint": st.text(max_size=5),
}
LENGTHS = st.lists(st.integers(0, 30), max_size=200).map(lambda lengths: np.array(lengths, dtype=np.uint16))
SAMPLES = st.fixed_dictionaries({"batch_size": st.integers(1, 17), "pool_batches": st.integers(1, 6), **_KEY})
TOKENS = st.fixed_dictionaries(
    {"budget": st.integers(30, 300), "span": st.none() | st.integers(1, 40), **_KEY}
)
#: Planners of both kinds, with all arguments but the lengths.
PLANNERS = SAMPLES.map(lambda each: partial(plan_epoch, **each)) | TOKENS.map(
    lambda each: partial(plan_tokens, **each)
)


def parts_of(plan: EpochPlan) -> list[list[npt.NDArray[np.int64]]]:
    return [
        [plan.micro_batch(step, part) for part in range(plan.micro_batches)] for step in range(plan.steps)
    ]


@given(LENGTHS, PLANNERS)
def test_every_sample_is_in_one_micro_batch_and_no_step_is_empty(lengths: Lengths, planner: Planner) -> None:
    plan = planner(lengths)
    steps = [np.concatenate(parts) for parts in parts_of(plan)]
    assert sorted(np.concatenate([*steps, []]).tolist()) == list(range(len(lengths)))
    assert all(len(step) for step in steps)
    assert all(np.array_equal(plan.step(number), step) for number, step in enumerate(steps))


@given(LENGTHS, PLANNERS)
def test_the_same_arguments_give_the_same_bytes(lengths: Lengths, planner: Planner) -> None:
    plan = planner(lengths)
    np.random.seed(0)
    again = planner(lengths.astype(np.int64))
    assert plan.order.tobytes() == again.order.tobytes()
    assert plan.offsets.tobytes() == again.offsets.tobytes()
    assert plan.order.dtype == plan.offsets.dtype == np.int64


@given(LENGTHS, PLANNERS, st.integers(1, 24))
def test_the_number_of_micro_batches_changes_no_step(
    lengths: Lengths, planner: Planner, micro_batches: int
) -> None:
    one, other = planner(lengths), planner(lengths, micro_batches=micro_batches)
    assert np.array_equal(one.order, other.order)
    assert all(len(one.step(number)) == len(other.step(number)) for number in range(one.steps))
