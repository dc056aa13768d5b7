"""Several buckets: equal sums on any power of two of processes, and no rank waits for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.support.patience import PATIENCE_S
from tests.tiers import first_quick
from tests.toolkit.support.ranks import assert_ended_by_rank_1, in_ranks, joined, run_ranks
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import ExactReduction, block
from toolkit.system.world import World

ALONE = Group(World.single(), torch.device("cpu"))
#: An empty piggyback.
NOTHING = partial(np.zeros, 0)
TOTAL = 8
#: Every parameter of the model here but the largest travels with others.
BUCKET_BYTES = 4096


class Layers(nn.Module):
    """Layers of sizes that nothing divides, a large one, one without a part in it, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.large = nn.Linear(7, 9001)
        self.unused = nn.Linear(5, 5)
        self.small = nn.Sequential(nn.Linear(9001, 3), nn.Tanh(), nn.Linear(3, 301), nn.Tanh())
        self.frozen = nn.Linear(301, 301).requires_grad_(False)
        self.last = nn.Linear(301, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.frozen(self.small(self.large(inputs)))).sum()
        return found


def inputs_of(number: int) -> torch.Tensor:
    """Magnitudes so different that the order of adding shows."""
    random = np.random.default_rng(number)
    return torch.from_numpy(random.standard_normal((3, 7)).astype(np.float32) * 10.0 ** (number % 5 - 2))


def add_up(model: nn.Module, reduction: ExactReduction, own: range, idle: frozenset[int]) -> None:
    """One step without its end: forward and backward of the micro-batches of this process."""
    reduction.start(NOTHING)
    for number in own:
        with reduction.micro_batch(last=number == own[-1]):
            if number not in idle:
                model(inputs_of(number)).backward()


def bytes_of(model: nn.Module) -> dict[str, bytes | None]:
    return {
        name: None if p.grad is None else p.grad.numpy().tobytes() for name, p in model.named_parameters()
    }


def sums_alone(idle: frozenset[int]) -> dict[str, bytes | None]:
    model = Layers()
    reduction = ExactReduction(model, ALONE)
    add_up(model, reduction, range(TOTAL), idle)
    reduction.finish()
    return bytes_of(model)


def in_group(world: World, folder: Path, work: Callable[..., Any], *arguments: Any) -> Any:
    """What work(world, model, reduction, *arguments) returns as one of the ranks."""
    with joined(world, folder) as group:
        model = Layers()
        reduction = ExactReduction(model, group, bucket_bytes=BUCKET_BYTES)
        with closing(reduction):
            found = work(world, model, reduction, *arguments)
        group.barrier()
        return found


def sum_twice(
    world: World, model: nn.Module, reduction: ExactReduction, idle: frozenset[int]
) -> list[dict[str, bytes | None]]:
    sums = []
    for _ in range(2):
        add_up(model, reduction, block(world.rank, world.size, TOTAL), idle)
        reduction.finish()
        sums.append(bytes_of(model))
    return sums


@pytest.mark.parametrize("size", first_quick([2, 4]))
@pytest.mark.parametrize("idle", [frozenset(), frozenset({1, 6, 7})], ids=["all at work", "some idle"])
def test_bucketed_sums_equal_those_of_one_process_to_the_bit(
    size: int, idle: frozenset[int], tmp_path: Path
) -> None:
    """With the idle ones the last of four ranks has no backward pass at all."""
    expected = sums_alone(idle)
    assert expected["frozen.weight"] is None
    assert expected["unused.weight"] == bytes(100)
    assert set(expected["large.weight"] or b"") != {0}
    for sums in in_ranks(size, in_group, tmp_path, sum_twice, idle):
        for found in sums:
            # Not the values themselves: pytest would print the difference of megabytes.
            assert [name for name in expected if found[name] != expected[name]] == []


def take_along(world: World, folder: Path, numbers: int, dtype: torch.dtype) -> list[bytes]:
    """The gradient of the largest layer, and what each of two steps took along."""
    with joined(world, folder) as group:
        model = Layers().to(dtype)
        found = []
        with closing(ExactReduction(model, group, piggyback=numbers, bucket_bytes=BUCKET_BYTES)) as reduction:
            for step in range(2):
                reduction.start(partial(own_share, world.rank, numbers, step))
                with reduction.micro_batch(last=True):
                    model(inputs_of(world.rank).to(dtype)).backward()
                found.append(reduction.finish().tobytes())
            found.append(model.large.weight.grad.to(torch.float64).numpy().tobytes())
        group.barrier()
        return found


def own_share(rank: int, numbers: int, step: int) -> np.ndarray:
    """Whole numbers that no shorter type than double precision holds."""
    share: np.ndarray = 2.0**30 * np.arange(numbers) + rank + 1 + step
    return share


@pytest.mark.parametrize(
    "size, dtype", first_quick([(2, torch.float32), (4, torch.float64), (2, torch.bfloat16)]), ids=str
)
@pytest.mark.parametrize("numbers", [1, 41, 30_001], ids="{} numbers".format)
def test_piggybacked_doubles_are_summed_exactly(
    size: int, dtype: torch.dtype, numbers: int, tmp_path: Path
) -> None:
    """Few, or more than the gradients beside them; of a gradient large enough to travel in halves."""
    expected = [sum(own_share(rank, numbers, step) for rank in range(size)) for step in range(2)]
    answers = in_ranks(size, take_along, tmp_path, numbers, dtype)
    for *rode, gradient in answers:
        assert rode == [np.asarray(each).tobytes() for each in expected]
        assert gradient == answers[0][-1]
        assert set(gradient) != {0}


def see_the_sum_in_backward(world: World, model: Layers, reduction: ExactReduction) -> bool:
    """Hold up the first layer's gradient until the last one's is that of all ranks."""
    expected = sums_alone(frozenset())["last.weight"]
    deadline = time.monotonic() + PATIENCE_S

    def wait(_: torch.Tensor) -> None:
        gradient = model.last.weight.grad
        while gradient.numpy().tobytes() != expected:
            assert time.monotonic() < deadline, "the sum of the last layer has not come"

    own = block(world.rank, world.size, TOTAL)
    reduction.start(NOTHING)
    for number in own:
        with reduction.micro_batch(last=number == own[-1]):
            hidden = model.large(inputs_of(number))
            if number == own[-1]:
                hidden.register_hook(wait)
            model.last(model.frozen(model.small(hidden))).sum().backward()
    reduction.finish()
    return True


def test_last_layers_are_summed_while_backward_is_still_running(tmp_path: Path) -> None:
    assert in_ranks(2, in_group, tmp_path, see_the_sum_in_backward) == [True, True]


def fail_on_rank_1(world: World, model: Layers, reduction: ExactReduction) -> None:
    def fail(_: torch.Tensor) -> None:
        raise ValueError("no gradient of this")

    reduction.start(NOTHING)
    with reduction.micro_batch(last=True):
        hidden = model.large(inputs_of(world.rank))
        if world.rank == 1:
            hidden.register_hook(fail)
        model.last(model.frozen(model.small(hidden))).sum().backward()
    reduction.finish()


@pytest.mark.parametrize("size", first_quick([2, 4]))
def test_rank_that_fails_in_backward_stops_the_other_ranks(size: int, tmp_path: Path) -> None:
    """Some buckets of the failing rank are already on their way."""
    assert_ended_by_rank_1(run_ranks(size, in_group, tmp_path, fail_on_rank_1), "no gradient of this")


def leave_without_the_sum(world: World, model: Layers, reduction: ExactReduction) -> str:
    add_up(model, reduction, block(world.rank, world.size, TOTAL), frozenset())
    return "left"


def test_ranks_can_leave_after_an_unfinished_step(tmp_path: Path) -> None:
    """As after a loss that is not finite: the sums are on their way, and no call asks for them."""
    assert in_ranks(2, in_group, tmp_path, leave_without_the_sum) == ["left", "left"]


def get_a_gradient_twice(world: World, model: Layers, reduction: ExactReduction) -> str:
    inputs = inputs_of(0).requires_grad_()
    reduction.start(NOTHING)
    with reduction.micro_batch(last=True):
        # Each re-entrant checkpoint is a backward pass of its own within the outer one.
        parts = [checkpoint(model.large, inputs, use_reentrant=True) for _ in range(2)]
        total = (parts[0] + parts[1]).sum()
        with pytest.raises(RuntimeError, match="got its gradient twice in one backward pass"):
            total.backward()
    return "refused"


def test_parameter_with_two_gradients_in_one_backward_pass_is_refused(tmp_path: Path) -> None:
    assert in_ranks(2, in_group, tmp_path, get_a_gradient_twice) == ["refused", "refused"]


class Aliased(nn.Module):
    """Autograd leaves one memory to the gradients of both parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(3, 2))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return ((self.first.view(6) + self.second.view(6)) * values).sum()


def test_gradients_that_share_memory_are_added_once() -> None:
    model = Aliased()
    model(torch.ones(6)).backward()
    assert model.first.grad.data_ptr() == model.second.grad.data_ptr(), "or this test could not fail"
    reduction = ExactReduction(model, ALONE)
    reduction.start(NOTHING)
    for number in range(4):
        with reduction.micro_batch(last=number == 3):
            model(torch.full((6,), 10.0**number)).backward()
    reduction.finish()
    assert model.first.grad.flatten().tolist() == model.second.grad.flatten().tolist() == [1111.0] * 6
    model.first.grad.mul_(2.0)
    assert model.second.grad.flatten().tolist() == [1111.0] * 6


@pytest.mark.parametrize("leaves", [2, 3])
def test_no_sum_is_minus_zero(leaves: int) -> None:
    """Or a sum would depend on which micro-batches have samples. Of a single one it is what there is."""
    model = nn.Linear(3, 1, bias=False)
    reduction = ExactReduction(model, ALONE)
    reduction.start(NOTHING)
    for number in range(leaves):
        with reduction.micro_batch(last=number == leaves - 1):
            (model.weight * torch.tensor([[-0.0, 0.0, 1.0]])).sum().backward()
    reduction.finish()
    assert torch.signbit(model.weight.grad).tolist() == [[False, False, False]]
