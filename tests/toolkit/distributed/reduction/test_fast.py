"""DDP's buckets: piggybacked numbers, unused parameters, and ranks that fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.tiers import first_quick
from tests.toolkit.support.ranks import assert_ended_by_rank_1, in_ranks, joined, run_ranks
from toolkit.distributed import process_group
from toolkit.distributed.reduction import FastReduction
from toolkit.errors import UserError
from toolkit.system.world import World
from toolkit.task import Loss

#: An empty piggyback.
NOTHING = partial(np.zeros, 0)
#: Rows with every byte, and with numbers that no shorter type holds.
ROWS = np.concatenate(
    [np.arange(256, dtype=np.uint8).view(np.float64), [math.pi, -0.0, math.nan, -math.inf, 5e-324, 1e308]]
).reshape(2, -1)


class Branches(nn.Module):
    """A layer that all ranks use, one that rank 0 alone uses, and one that no rank uses."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.shared, self.single, self.unused = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, inputs: torch.Tensor, rank: int) -> torch.Tensor:
        found: torch.Tensor = self.shared(inputs).sum()
        return found + self.single(inputs).sum() if rank == 0 else found


def in_group(world: World, folder: Path, work: Callable[..., Any], *arguments: Any) -> Any:
    """What work(group, *arguments) returns as one of the ranks."""
    with joined(world, folder) as group:
        found = work(group, *arguments)
        group.barrier()
        return found


def collectives_of_a_step(group: process_group.Group) -> list[str]:
    """The all-reduces of a step of two micro-batches, and when it calls `piggyback`.

    `computed` comes before the end of backward, where DDP waits for the other ranks.
    """
    events: list[str] = []
    all_reduce = dist.all_reduce

    def noted(values: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        events.append(f"sum of {len(values)}")
        return all_reduce(values, *args, **kwargs)

    def piggyback() -> np.ndarray:
        events.append("asked")
        rows = np.zeros((group.world.size, 2))
        rows[group.world.rank] = -0.1, math.inf
        return rows

    model = nn.Linear(3, 1)
    fast = FastReduction(model, group)
    with closing(fast) as reduction, patch.object(dist, "all_reduce", noted):
        reduction.start(piggyback, partial(events.append, "computed"))
        for number in range(2):
            with reduction.micro_batch(last=number == 1):
                reduction.compute(nn.Module.__call__, torch.ones(2, 3)).sum().backward()
                events.append("backward")
        rode = reduction.finish()
    assert rode.tolist() == [[-0.1, math.inf]] * group.world.size
    return events


def test_piggyback_is_sent_in_the_collective_of_the_gradients(tmp_path: Path) -> None:
    """Another collective would cost milliseconds where ranks share cores."""
    expected = ["backward", "asked", f"sum of {4 + 4 * 8}", "computed", "backward"]
    assert in_ranks(2, in_group, tmp_path, collectives_of_a_step) == [expected, expected]


def sum_branches(group: process_group.Group) -> list[dict[str, list[float]]]:
    """The gradients of the bias of each branch after each of three steps of two micro-batches.

    Rank 0 uses its own branch only in the first micro-batch, and in the second step not at all.
    """
    model, found = Branches(), []
    with closing(FastReduction(model, group)) as reduction:
        for step in range(3):
            reduction.start(NOTHING)
            for number in range(2):
                uses = group.world.rank if (step, number) in ((0, 0), (2, 0)) else 1
                with reduction.micro_batch(last=number == 1):
                    reduction.compute(nn.Module.__call__, torch.full((step + 1, 3), 2.0), uses).backward()
            reduction.finish()
            found.append({name: layer.bias.grad.tolist() for name, layer in model.named_children()})
    return found


@pytest.mark.parametrize("size", first_quick([3, 2]))
def test_unused_parameters_get_the_sum_of_the_ranks_that_use_them(size: int, tmp_path: Path) -> None:
    """Parameters that no rank uses get zero, as in an exact sum; each step may use others."""
    for found in in_ranks(size, in_group, tmp_path, sum_branches):
        assert found == [
            {"shared": [2 * size * samples] * 2, "single": [single] * 2, "unused": [0.0] * 2}
            for samples, single in ((1.0, 1.0), (2.0, 0.0), (3.0, 3.0))
        ]


def sums_of_equal_steps(group: process_group.Group) -> list[bytes]:
    """The gradients of three steps of the same samples; they fill more than DDP's first bucket."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 512), nn.Linear(512, 520), nn.Linear(520, 8))
    inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(group.world.rank))
    found = []
    with closing(FastReduction(model, group)) as reduction:
        for _ in range(3):
            reduction.start(NOTHING)
            with reduction.micro_batch(last=True):
                reduction.compute(nn.Module.__call__, inputs).square().sum().backward()
            reduction.finish()
            found.append(b"".join(each.grad.numpy().tobytes() for each in model.parameters()))
    return found


def test_first_step_of_an_attempt_rounds_as_the_later_ones(tmp_path: Path) -> None:
    """A resumed run has another first step; two processes would round alike in any bucket."""
    for found in in_ranks(3, in_group, tmp_path, sums_of_equal_steps):
        assert len(set(found)) == 1


def gradient_of_a_part(group: process_group.Group) -> list[list[float]]:
    """The gradient of a layer that a loss calls by its name, in two steps."""
    model, found = nn.ModuleDict({"head": nn.Linear(3, 1)}), []
    with closing(FastReduction(model, group)) as reduction:
        for _ in range(2):
            reduction.start(NOTHING)
            with reduction.micro_batch(last=True):
                reduction.compute(lambda each: each["head"](torch.ones(2, 3))).sum().backward()
            reduction.finish()
            found.append(model["head"].weight.grad[0].tolist())
    return found


def test_a_loss_may_call_submodules_of_the_model(tmp_path: Path) -> None:
    """The loss gets the model itself, and the gradients are still summed."""
    assert in_ranks(2, in_group, tmp_path, gradient_of_a_part) == [[[4.0] * 3] * 2] * 2


def loss_with_an_attached_score(model: Branches) -> Loss:
    inputs = torch.ones(2, 3)
    return Loss(total=model.shared(inputs).sum(), count=2, tokens=2, sums=model.single(inputs).sum(0))


def attach_a_score(group: process_group.Group) -> str:
    with closing(FastReduction(Branches(), group)) as reduction:
        reduction.start(NOTHING)
        with reduction.micro_batch(last=True):
            reduction.compute(loss_with_an_attached_score).total.backward()
        with pytest.raises(UserError) as refusal:
            reduction.finish()
        return str(refusal.value)


def test_scores_with_gradients_that_the_loss_lacks_are_refused(tmp_path: Path) -> None:
    """DDP would wait for those gradients, and leave all others of their bucket unsummed."""
    for said in in_ranks(2, in_group, tmp_path, attach_a_score):
        assert "Loss.sums" in said


def checkpoint_activations(group: process_group.Group) -> str:
    model = Branches()
    recomputed = partial(checkpoint, model.shared, use_reentrant=True)
    with closing(FastReduction(model, group)) as reduction:
        reduction.start(NOTHING)
        with pytest.raises(UserError) as refusal, reduction.micro_batch(last=True):
            reduction.compute(lambda _: recomputed(torch.ones(2, 3, requires_grad=True)).sum()).backward()
        return str(refusal.value)


def test_reentrant_checkpoints_of_activations_are_refused_with_the_other_way(tmp_path: Path) -> None:
    """DDP does not name the cause, and proposes a setting that stk does not have."""
    for said in in_ranks(2, in_group, tmp_path, checkpoint_activations):
        assert "use_reentrant=False" in said


def fail_on_rank_1(group: process_group.Group) -> None:
    def fail(_: torch.Tensor) -> None:
        raise ValueError("no gradient of this")

    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    with closing(FastReduction(model, group)) as reduction:
        reduction.start(NOTHING)
        with reduction.micro_batch(last=True):
            loss = reduction.compute(nn.Module.__call__, torch.ones(2, 3)).sum()
            if group.world.rank == 1:
                model[0].weight.register_hook(fail)
            loss.backward()
        reduction.finish()


@pytest.mark.slow
def test_rank_that_fails_in_backward_stops_the_other_ranks(tmp_path: Path) -> None:
    assert_ended_by_rank_1(run_ranks(4, in_group, tmp_path, fail_on_rank_1), "no gradient of this")


def take_along(group: process_group.Group, dtype: torch.dtype) -> tuple[bytes, list[float]]:
    """What every double that a step of any type may carry came back as, and the gradient beside it."""
    model = nn.Linear(2, 1, bias=False).to(dtype)
    with closing(FastReduction(model, group)) as reduction:
        reduction.start(lambda: ROWS if group.world.rank == 1 else np.zeros_like(ROWS))
        with reduction.micro_batch(last=True):
            reduction.compute(nn.Module.__call__, torch.ones(3, 2, dtype=dtype)).sum().backward()
        rode = reduction.finish().tobytes()
    return rode, model.weight.grad[0].tolist()


@pytest.mark.parametrize(
    "dtype", first_quick([torch.float64, torch.float32, torch.bfloat16, torch.float16]), ids=str
)
def test_piggyback_is_bit_exact_beside_gradients_of_any_dtype(dtype: torch.dtype, tmp_path: Path) -> None:
    for rode, gradient in in_ranks(3, in_group, tmp_path, take_along, dtype):
        assert rode == ROWS.tobytes()
        assert gradient == [9.0, 9.0]
