"""One sum, the same on every rank; with the tree, the same bytes on every power of two of processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.tiers import first_quick
from tests.toolkit.support.ranks import in_ranks, joined
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import (
    ExactReduction,
    FastReduction,
    Reduction,
    block,
    is_power_of_two,
    parts_for,
    passes,
)
from toolkit.errors import UserError
from toolkit.system.world import World

ALONE = Group(World.single(), torch.device("cpu"))
#: An empty piggyback.
NOTHING = partial(np.zeros, 0)


class Sum(nn.Module):
    """The gradient of its output is its input."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.zeros(5))
        # Its numbers lie in memory column by column.
        self.second = nn.Parameter(torch.zeros(4, 2).t())

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return (values[:5] * self.first).sum() + (values[5:].view(2, 4) * self.second).sum()


def gradients_of(number: int, seed: int) -> torch.Tensor:
    """What micro-batch `number` contributes: magnitudes so different that the order of adding shows."""
    random = np.random.default_rng([seed, number])
    values = random.standard_normal(13) * 10.0 ** random.uniform(-4, 4, 13)
    return torch.from_numpy(values.astype(np.float32))


def riding_of(numbers: range, total: int, seed: int) -> np.ndarray:
    """What rides on a step: a row of each micro-batch, zero where it is another process's."""
    rows = np.random.default_rng(seed).standard_normal((total, 3)) * 10.0 ** np.arange(-150, 150, 100)
    rows[[number for number in range(total) if number not in numbers]] = 0.0
    return rows


def sum_step(
    reduction: Reduction,
    numbers: range,
    seed: int,
    idle: frozenset[int] = frozenset(),
    piggyback: Callable[[], np.ndarray] = NOTHING,
) -> np.ndarray:
    """One step: the micro-batches of this process, of which some have no samples."""
    reduction.start(piggyback)
    for number in numbers:
        last = number == numbers[-1]
        with reduction.micro_batch(last):
            if number not in idle:
                reduction.compute(nn.Module.__call__, gradients_of(number, seed)).backward()
            elif last and reduction.needs_backward:
                (reduction.compute(nn.Module.__call__, gradients_of(number, seed)) * 0.0).backward()
    return reduction.finish()


def gradient(model: nn.Module) -> np.ndarray:
    found: np.ndarray = np.concatenate([np.asarray(p.grad).ravel() for p in model.parameters()])
    return found


def by_hand(numbers: list[int], seed: int, idle: frozenset[int] = frozenset()) -> np.ndarray:
    """The balanced tree, written down."""
    if len(numbers) == 1:
        return np.zeros(13, np.float32) if numbers[0] in idle else np.asarray(gradients_of(numbers[0], seed))
    half = len(numbers) // 2
    total: np.ndarray = np.zeros(13, np.float32)
    total += by_hand(numbers[:half], seed, idle)
    total += by_hand(numbers[half:], seed, idle)
    return total


def reduce_rank(world: World, folder: Path, kind: str, total: int, idle: frozenset[int]) -> list[Any]:
    """The sums of three steps on one rank, its model's first numbers at the end, and what rode on the steps.

    The model begins with numbers of its own.
    """
    with joined(world, folder) as group:
        model = Sum()
        with torch.no_grad():
            model.first.add_(world.rank)
        reduction: Reduction
        if kind == "exact":
            reduction = ExactReduction(model, group, piggyback=3 * total)
        else:
            reduction = FastReduction(model, group)
        sums, rode = [], []
        own = block(world.rank, world.size, total)
        with closing(reduction):
            for step in range(3):
                rode.append(sum_step(reduction, own, step, idle, partial(riding_of, own, total, step)).copy())
                sums.append(gradient(model).copy())
        group.barrier()
        assert model.second.grad.stride() == model.second.stride()
        return [*sums, model.first.detach().numpy().copy(), *rode]


@given(size=st.integers(1, 64), extra=st.integers(0, 200))
def test_blocks_split_the_logical_ranks_evenly_and_in_order(size: int, extra: int) -> None:
    total = size + extra
    blocks = [block(rank, size, total) for rank in range(size)]
    assert [number for each in blocks for number in each] == list(range(total))
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    assert min(map(len, blocks)) >= 1


@pytest.mark.parametrize("number", range(-2, 70))
def test_is_power_of_two_recognizes_powers_of_two(number: int) -> None:
    assert is_power_of_two(number) == (number in (1, 2, 4, 8, 16, 32, 64))


@pytest.mark.parametrize("total", [1, 2, 8, 32])
def test_one_process_sums_in_a_balanced_tree(total: int) -> None:
    model = Sum()
    reduction = ExactReduction(model, ALONE)
    for seed in range(3):
        sum_step(reduction, range(total), seed)
        assert gradient(model).tobytes() == by_hand(list(range(total)), seed).tobytes()


def test_sums_of_the_test_data_depend_on_the_order() -> None:
    """Otherwise the tests in this file could not fail."""
    in_a_row = gradients_of(0, 0).clone()
    for number in range(1, 8):
        in_a_row += gradients_of(number, 0)
    assert in_a_row.numpy().tobytes() != by_hand(list(range(8)), 0).tobytes()


@pytest.mark.parametrize("size", [2, 4, 8])
def test_sums_of_any_power_of_two_of_processes_equal_those_of_one(size: int, tmp_path: Path) -> None:
    """Two micro-batches are empty; every rank has the same sums, and rank 0's parameters."""
    idle = frozenset({6, 7})
    for sums in in_ranks(size, reduce_rank, tmp_path, "exact", 8, idle):
        for seed, found in enumerate(sums[:3]):
            assert found.tobytes() == by_hand(list(range(8)), seed, idle).tobytes()
        assert sums[3].tolist() == [0.0] * 5


@pytest.mark.parametrize("kind", ["exact", "fast"])
@pytest.mark.parametrize("size", first_quick([3, 1, 2, 4]))
def test_piggyback_is_the_same_on_every_rank(kind: str, size: int, tmp_path: Path) -> None:
    for sums in in_ranks(size, reduce_rank, tmp_path, kind, 8, frozenset({7})):
        for seed, rode in enumerate(sums[4:]):
            assert rode.tobytes() == riding_of(range(8), 8, seed).tobytes()


@pytest.mark.parametrize("kind, size", [("exact", 3), ("fast", 1), ("fast", 2), ("fast", 3)])
def test_other_sizes_and_fast_sums_are_equal_within_rounding(kind: str, size: int, tmp_path: Path) -> None:
    """Rank 2 of three has nothing but empty micro-batches."""
    idle = frozenset({5, 6, 7})
    ranks = in_ranks(size, reduce_rank, tmp_path, kind, 8, idle)
    for sums in ranks:
        for seed, found in enumerate(sums[:3]):
            exact = np.sum(
                [gradients_of(n, seed).double().numpy() for n in range(8) if n not in idle], axis=0
            )
            scale = np.max([np.abs(gradients_of(n, seed).numpy()) for n in range(8)], axis=0)
            np.testing.assert_array_less(np.abs(found - exact), 1e-5 * scale)
            assert found.tobytes() == ranks[0][seed].tobytes()
        assert sums[3].tolist() == [0.0] * 5


def leave_often(world: World, folder: Path) -> int:
    for time in range(12):
        reduce_rank(world, folder / str(time), "fast", 8, frozenset({7}))
    return world.rank


@pytest.mark.slow
def test_ranks_can_leave_a_group_right_after_its_last_sum(tmp_path: Path) -> None:
    """DDP must not be the one to free the group: it would hold the GIL, which the group's thread may want."""
    assert in_ranks(3, leave_often, tmp_path) == [0, 1, 2]


@given(
    size=st.integers(1, 8),
    logical_ranks=st.integers(8, 24),
    accumulation=st.integers(1, 4),
    joined=st.booleans(),
)
def test_every_micro_batch_is_computed_once(
    size: int, logical_ranks: int, accumulation: int, joined: bool
) -> None:
    ranks = [passes(rank, size, logical_ranks, accumulation, joined=joined) for rank in range(size)]
    computed = sorted(number for own in ranks for each in own for number in each)
    assert computed == list(range(logical_ranks * accumulation))
    if joined:
        assert {len(own) for own in ranks} == {accumulation}
    else:
        assert {len(each) for own in ranks for each in own} == {1}


def test_exact_reduction_of_mixed_types_is_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    with pytest.raises(
        UserError, match=r"one type on one device; found torch.float32 on cpu, torch.float64 on cpu"
    ):
        ExactReduction(model, ALONE)


@given(st.integers(1, 64), st.integers(1, 600))
def test_steps_are_split_further_until_every_process_has_a_part(logical_ranks: int, size: int) -> None:
    parts = parts_for(logical_ranks, size)
    assert parts >= size
    assert parts == logical_ranks or parts < 2 * size
    assert is_power_of_two(parts // logical_ranks)
    assert parts % logical_ranks == 0
