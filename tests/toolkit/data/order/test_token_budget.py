"""Steps of tokens: each sample once, none over the budget, as many steps in every epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.data.order.test_plans import LENGTHS, TOKENS, parts_of
from toolkit.data.order.sample_order import EpochPlan
from toolkit.data.order.token_budget import _sorting, plan_evaluation_tokens, plan_tokens, steps_of_tokens
from toolkit.errors import DataError

Lengths = npt.NDArray[np.integer]

USUAL: dict[str, Any] = {
    "budget": 4096,
    "span": 4,
    "micro_batches": 8,
    "seed": 0,
    "epoch": 0,
    "fingerprint": "data",
}


def like_texts(n: int) -> Lengths:
    """Many short lengths and a few long ones, at most 511."""
    draws = np.random.default_rng(0).lognormal(4, 0.8, n)
    return np.clip(draws, 3, 511).astype(np.int32)


def padded(plan: EpochPlan, lengths: Lengths) -> npt.NDArray[np.int64]:
    """Padded tokens of each micro-batch: [steps, micro_batches]."""
    return np.array(
        [[len(part) * int(lengths[part].max(initial=0)) for part in parts] for parts in parts_of(plan)]
    )


@given(LENGTHS, TOKENS, st.integers(0, 9))
def test_the_number_of_steps_depends_on_the_lengths_alone(
    lengths: Lengths, arguments: dict[str, Any], seed: int
) -> None:
    steps = steps_of_tokens(lengths, arguments["budget"], arguments["span"])
    assert plan_tokens(lengths, **arguments).steps == steps
    assert plan_tokens(lengths, **(arguments | {"seed": seed, "epoch": 7})).steps == steps
    assert steps_of_tokens(lengths[::-1].astype(np.int64), arguments["budget"], arguments["span"]) == steps


@given(LENGTHS, TOKENS)
def test_no_step_is_over_the_budget(lengths: Lengths, arguments: dict[str, Any]) -> None:
    plan = plan_tokens(lengths, **arguments)
    for number in range(plan.steps):
        inside = lengths[plan.step(number)].astype(int)
        # Without buckets padding is not counted; with them it is, even if all were padded to one length.
        tokens = inside.sum() if arguments["span"] is None else len(inside) * inside.max()
        assert tokens <= arguments["budget"]


@pytest.mark.parametrize("lengths, samples", [((508, 511), 24), ((0, 3), 4096)])
def test_steps_of_a_bucket_are_sized_by_its_longest_length(lengths: tuple[int, int], samples: int) -> None:
    some = np.resize(np.arange(lengths[0], lengths[1] + 1), 2 * samples)
    plan = plan_tokens(some, **(USUAL | {"budget": 12288}))
    assert [len(plan.step(number)) for number in range(plan.steps)] == [samples] * 2


def test_leftover_samples_of_buckets_share_steps_longest_first() -> None:
    """100 tokens: 5 of 16 to 19 and 14 of 4 to 7 make a step; 7 and 15 leave 2 and 1, which share one."""
    lengths = np.repeat([17, 6], [7, 15])
    plan = plan_tokens(lengths, **(USUAL | {"budget": 100}))
    steps = [sorted(lengths[plan.step(number)].tolist()) for number in range(plan.steps)]
    assert sorted(steps) == [[6] * 14, [6, 17, 17], [17] * 5]


def test_a_bucket_that_ends_above_the_budget_accepts_samples_within_the_budget() -> None:
    plan = plan_tokens(np.array([509, 509]), **(USUAL | {"budget": 510}))
    assert [len(plan.step(number)) for number in range(plan.steps)] == [1, 1]


def test_without_buckets_steps_are_shuffled_and_hold_about_equally_many_tokens() -> None:
    lengths = like_texts(3000)
    plan = plan_tokens(lengths, **(USUAL | {"span": None}))
    tokens = [int(lengths[plan.step(number)].sum()) for number in range(plan.steps)]
    assert max(tokens) - min(tokens) <= 2 * 511
    assert min(tokens) > 4096 - 2 * 511
    spans = [np.ptp(lengths[plan.step(number)]) for number in range(plan.steps)]
    assert min(spans) > 100


@pytest.mark.parametrize("span", [4, None])
@pytest.mark.parametrize("changed", [{"epoch": 1}, {"seed": 1}, {"fingerprint": "other"}])
def test_epoch_seed_and_data_each_change_the_steps(span: int | None, changed: dict[str, Any]) -> None:
    usual, lengths = USUAL | {"span": span}, like_texts(4000)
    one, other = (
        {frozenset(plan.step(number).tolist()) for number in range(plan.steps)}
        for plan in (plan_tokens(lengths, **(usual | extra)) for extra in ({}, changed))
    )
    # Of the longest, which are few, the same ones meet each time.
    assert len(one & other) < (0.2 * len(one) if span else 1)


def test_steps_do_not_come_in_order_of_length() -> None:
    lengths = like_texts(2000)
    plan = plan_tokens(lengths, **USUAL)
    means = [float(lengths[plan.step(number)].mean()) for number in range(plan.steps)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


def test_micro_batches_of_a_step_have_about_equal_padded_tokens() -> None:
    """The longest in a step of one bucket has at most one sample more than the mean."""
    lengths = like_texts(20000)
    plan = plan_tokens(lengths, **(USUAL | {"budget": 16384}))
    costs = padded(plan, lengths)
    longest = np.array([lengths[plan.step(number)].max() for number in range(plan.steps)])
    assert np.all(costs.max(axis=1) - costs.mean(axis=1) <= longest + 8)
    assert int(lengths.sum()) / costs.sum() > 0.99


def test_micro_batches_of_mixed_lengths_have_about_equal_padded_tokens() -> None:
    """Equal tokens would pad the many short ones to a middle length, at 1.4 times the cost of the others."""
    lengths = like_texts(5000)
    plan = plan_tokens(lengths, **(USUAL | {"span": None, "budget": 32768}))
    costs = padded(plan, lengths)
    assert np.mean(costs.max(axis=1) / costs.mean(axis=1)) < 1.1


def test_fewer_samples_than_micro_batches_leave_some_empty() -> None:
    plan = plan_tokens(np.array([500, 500, 500]), **(USUAL | {"budget": 2000}))
    assert sorted(len(part) for part in parts_of(plan)[0]) == [0, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("span", [4, None])
def test_a_sample_over_the_budget_is_refused_with_its_length_and_the_option(span: int | None) -> None:
    lengths = np.array([3, 800, 5])
    with pytest.raises(
        DataError, match=r"train\.batch_max_length allows 512 .* sample 1 .* has 800 .* several times"
    ):
        steps_of_tokens(lengths, 512, span)
    with pytest.raises(DataError):
        plan_tokens(lengths, **(USUAL | {"budget": 512, "span": span}))


@given(st.lists(st.integers(0, 9) | st.integers(2**62, 2**63 - 1), min_size=1))
def test_equal_keys_keep_their_order_however_large_they_are(numbers: list[int]) -> None:
    assert _sorting(np.array(numbers)).tolist() == sorted(range(len(numbers)), key=lambda n: numbers[n])


@given(LENGTHS, st.integers(1, 100))
def test_an_evaluation_plan_has_every_sample_once_within_the_budget(lengths: Lengths, budget: int) -> None:
    plan = plan_evaluation_tokens(lengths, budget)
    assert plan.order.tolist() == sorted(range(len(lengths)), key=lambda sample: lengths[sample])
    batches = [lengths[plan.step(number)].astype(int) for number in range(plan.steps)]
    assert sum(map(len, batches)) == len(lengths)
    assert all(len(batch) for batch in batches)
    assert all(len(batch) * batch.max() <= budget or len(batch) == 1 for batch in batches)


def test_steps_equal_those_of_the_first_release() -> None:
    """A run that resumes under another numpy, or on another processor, must find the same steps."""
    lengths = np.arange(12) * 7 % 12 + 1
    usual = USUAL | {"budget": 30, "micro_batches": 2}
    bucketed, shuffled = (plan_tokens(lengths, **(usual | {"span": span})) for span in (4, None))
    assert bucketed.order.tolist() == [0, 5, 8, 10, 7, 2, 1, 3, 9, 4, 11, 6]
    assert bucketed.offsets.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    assert shuffled.order.tolist() == [2, 4, 6, 7, 11, 5, 8, 10, 0, 3, 9, 1]
    assert shuffled.offsets.tolist() == [0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]
