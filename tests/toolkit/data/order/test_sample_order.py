"""The order of samples is a pure function, and each sample occurs once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.data.order.test_plans import LENGTHS, SAMPLES, parts_of
from toolkit.data.order.sample_order import EpochPlan, plan_epoch, plan_evaluation, steps_per_epoch
from toolkit.data.order.shuffle import permutation, stream

Lengths = npt.NDArray[np.int32]

USUAL: dict[str, Any] = {
    "batch_size": 16,
    "micro_batches": 4,
    "pool_batches": 10,
    "seed": 0,
    "epoch": 0,
    "fingerprint": "data",
}


def some_lengths(n: int) -> Lengths:
    return (np.arange(n, dtype=np.int32) * 7919 % 97) + 1


def padding(plan: EpochPlan, lengths: Lengths) -> float:
    """Share of a plan's padded tokens that are padding."""
    parts = [part for step in parts_of(plan) for part in step]
    padded = sum(len(part) * int(lengths[part].max(initial=0)) for part in parts)
    return 1 - int(lengths.sum()) / padded


@given(LENGTHS, SAMPLES)
def test_all_steps_but_the_last_are_full_and_split_evenly(
    lengths: Lengths, arguments: dict[str, Any]
) -> None:
    plan = plan_epoch(lengths, **arguments)
    assert plan.steps == steps_per_epoch(len(lengths), arguments["batch_size"])
    for step in range(plan.steps):
        sizes = [len(plan.micro_batch(step, part)) for part in range(plan.micro_batches)]
        assert max(sizes) - min(sizes) <= 1
        left = len(lengths) - step * arguments["batch_size"]
        assert sum(sizes) == len(plan.step(step)) == min(arguments["batch_size"], left)


@pytest.mark.parametrize("changed", [{"epoch": 1}, {"seed": 1}, {"fingerprint": "other"}])
@pytest.mark.parametrize("pool_batches", [1, 10])
def test_epoch_seed_and_data_each_change_the_order(changed: dict[str, Any], pool_batches: int) -> None:
    usual = USUAL | {"pool_batches": pool_batches}
    one, other = (plan_epoch(some_lengths(400), **(usual | extra)) for extra in ({}, changed))
    assert not np.array_equal(one.order, other.order)


@given(LENGTHS, SAMPLES)
def test_a_batch_contains_samples_of_similar_length(lengths: Lengths, arguments: dict[str, Any]) -> None:
    plan = plan_epoch(lengths, **(arguments | {"pool_batches": 1000}))
    spans = sorted(
        (int(lengths[plan.step(step)].min()), int(lengths[plan.step(step)].max()))
        for step in range(plan.steps)
    )
    assert all(high <= low for (_, high), (low, _) in pairwise(spans))
    assert all(np.all(np.diff(lengths[plan.step(step)]) >= 0) for step in range(plan.steps))


def test_a_pool_of_one_batch_is_pure_shuffling() -> None:
    plan = plan_epoch(some_lengths(400), **(USUAL | {"pool_batches": 1}))
    other = plan_epoch(some_lengths(400)[::-1], **(USUAL | {"pool_batches": 1}))
    assert np.array_equal(plan.order, other.order)


def test_pools_reduce_padding() -> None:
    lengths = some_lengths(2000)
    pure, pooled = (plan_epoch(lengths, **(USUAL | {"pool_batches": pools})) for pools in (1, 50))
    assert padding(pooled, lengths) < 0.05 < padding(pure, lengths)


def test_batches_do_not_come_in_order_of_length() -> None:
    lengths = some_lengths(1600)
    plan = plan_epoch(lengths, **(USUAL | {"pool_batches": 100}))
    means = [float(lengths[plan.step(step)].mean()) for step in range(plan.steps)]
    assert means != sorted(means)


@pytest.mark.parametrize("step, part", [(3, 0), (-1, 0), (0, 4), (0, -1)])
def test_an_index_outside_the_epoch_raises_index_error(step: int, part: int) -> None:
    plan = plan_epoch(some_lengths(35), **USUAL)
    with pytest.raises(IndexError):
        plan.micro_batch(step, part)


def test_a_plan_is_read_only() -> None:
    plan = plan_epoch(some_lengths(35), **USUAL)
    with pytest.raises(ValueError, match="read-only"):
        plan.step(0)[0] = 1


@given(LENGTHS, st.integers(1, 17))
def test_an_evaluation_plan_has_every_sample_once_sorted_by_length(lengths: Lengths, batch_size: int) -> None:
    plan = plan_evaluation(lengths, batch_size)
    assert plan.order.tolist() == sorted(range(len(lengths)), key=lambda sample: lengths[sample])
    assert plan.steps == steps_per_epoch(len(lengths), batch_size)
    assert all(len(plan.step(step)) <= batch_size for step in range(plan.steps))
    assert all(np.array_equal(plan.step(step), plan.micro_batch(step, 0)) for step in range(plan.steps))


@given(st.integers(0, 5000), st.integers(0, 2**40))
def test_a_permutation_contains_every_number_once(n: int, seed: int) -> None:
    assert sorted(permutation(stream("test", seed), n).tolist()) == list(range(n))


def test_permutations_are_uniform() -> None:
    counts = np.zeros((4, 4))
    for seed in range(4000):
        counts[np.arange(4), permutation(stream("test", seed), 4)] += 1
    assert np.all(np.abs(counts - 1000) < 150)


def test_orders_equal_those_of_the_first_release() -> None:
    """A run that resumes under another numpy, or on another processor, must find the same order."""
    assert permutation(stream("test", 1), 12).tolist() == [0, 5, 11, 1, 8, 6, 4, 2, 7, 9, 10, 3]
    order = plan_epoch(some_lengths(12), **(USUAL | {"batch_size": 4})).order
    assert order.tolist() == [0, 11, 8, 5, 2, 10, 7, 4, 1, 9, 6, 3]


@given(excluded=st.sets(st.integers(0, 9)))
def test_a_placeholder_is_the_first_sample_that_is_not_excluded(excluded: set[int]) -> None:
    plan = plan_epoch(some_lengths(10), **USUAL)
    left = [sample for sample in plan.order.tolist() if sample not in excluded]
    assert plan.placeholder(list(excluded)).tolist() == left[:1]
