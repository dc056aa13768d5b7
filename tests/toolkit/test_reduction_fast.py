"""DDP's buckets: what rides on them, parameters without a part in the loss, ranks that fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.toolkit.ranks import NO_ANSWER, in_ranks, run_ranks
from toolkit import distributed
from toolkit.config.schema import Train
from toolkit.reduction import ExactReduction, FastReduction, Reduction
from toolkit.rundir import RunDir
from toolkit.world import World

#: What rides on the gradients where nothing does.
NOTHING = partial(np.zeros, 0)


class Branches(nn.Module):
    """A layer that all ranks use, one that rank 0 alone uses, and one that nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.shared, self.single, self.unused = nn.Linear(3, 2), nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, inputs: torch.Tensor, rank: int) -> torch.Tensor:
        found: torch.Tensor = self.shared(inputs).sum()
        return found + self.single(inputs).sum() if rank == 0 else found


def in_group(world: World, folder: Path, work: Callable[..., Any], *arguments: Any) -> Any:
    """What work(group, *arguments) returns as one of the ranks."""
    with distributed.join(RunDir(folder), world, Train(device="cpu", collective_timeout_s=60)) as group:
        found = work(group, *arguments)
        group.barrier()
        return found


def order_of_events(group: distributed.Group, kind: str) -> list[str]:
    """When, in a step of two micro-batches, what rides was asked for."""
    events: list[str] = []
    model = nn.Linear(3, 1)
    reduction: Reduction = (
        ExactReduction(model, group, riding=1) if kind == "exact" else FastReduction(model, group, False)
    )

    def riding() -> np.ndarray:
        events.append("asked")
        return np.ones(1)

    with closing(reduction):
        reduction.start(riding)
        for number in range(2):
            with reduction.leaf(last=number == 1):
                loss = reduction.module(torch.ones(2, 3)).sum()
                if number == 1:
                    reduction.ride()
                loss.backward()
                events.append("backward")
        events.append(f"summed {reduction.finish().tolist()}")
    return events


def test_what_rides_is_on_its_way_during_the_last_backward_pass(tmp_path: Path) -> None:
    """To wait for the others once more after it would cost milliseconds where ranks share cores."""
    expected = ["backward", "asked", "backward", "summed [2.0]"]
    assert in_ranks(2, in_group, tmp_path, order_of_events, "fast") == [expected, expected]


def test_what_rides_on_exact_sums_is_asked_for_as_late_as_can_be(tmp_path: Path) -> None:
    """The last bucket takes it along: a stop asked for during backward is heard in this very step."""
    expected = ["backward", "backward", "asked", "summed [2.0]"]
    assert in_ranks(2, in_group, tmp_path, order_of_events, "exact") == [expected, expected]


def sum_branches(group: distributed.Group) -> list[dict[str, list[float] | None]]:
    """The gradients of the bias of each branch after each of three steps."""
    model, found = Branches(), []
    with closing(FastReduction(model, group, find_unused_parameters=True)) as reduction:
        for step in range(3):
            reduction.start(NOTHING)
            with reduction.leaf(last=True):
                reduction.module(torch.full((step + 1, 3), 2.0), group.world.rank).backward()
            reduction.finish()
            found.append(
                {
                    name: None if layer.bias.grad is None else layer.bias.grad.tolist()
                    for name, layer in model.named_children()
                }
            )
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_parameters_that_some_ranks_do_not_use_get_the_sum_of_the_others(size: int, tmp_path: Path) -> None:
    for found in in_ranks(size, in_group, tmp_path, sum_branches):
        assert found == [
            {"shared": [size * samples] * 2, "single": [samples] * 2, "unused": None}
            for samples in (1.0, 2.0, 3.0)
        ]


def fail_on_rank_1(group: distributed.Group) -> None:
    def fail(_: torch.Tensor) -> None:
        raise ValueError("no gradient of this")

    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    with closing(FastReduction(model, group, find_unused_parameters=False)) as reduction:
        reduction.start(partial(np.ones, 4))
        with reduction.leaf(last=True):
            loss = reduction.module(torch.ones(2, 3)).sum()
            if group.world.rank == 1:
                model[0].weight.register_hook(fail)
            reduction.ride()
            loss.backward()
        reduction.finish()


@pytest.mark.parametrize("size", [2, 4])
def test_rank_that_fails_in_backward_ends_the_others(size: int, tmp_path: Path) -> None:
    """What rides is on its way by then, and the gradients never come."""
    ended = run_ranks(size, in_group, tmp_path, fail_on_rank_1)
    assert ended[1].error == "ValueError: no gradient of this"
    for rank, end in enumerate(ended):
        assert end.error not in ("", NO_ANSWER), rank
        assert rank == 1 or end.error.startswith(("RuntimeError", "DistBackendError")), end.error
