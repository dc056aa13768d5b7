"""Ranks on devices that round differently keep equal weights: all clip by the gradient norm of rank 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch import nn

from tests.toolkit.support.ranks import in_ranks, joined, run_ranks
from tests.toolkit.support.tiny import tiny
from tests.toolkit.support.tiny_training import Lab
from toolkit.distributed import process_group
from toolkit.distributed.devices import Assignment
from toolkit.reliability.stop import StopFlag
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.step.take_step import clip


def rounding(world: World) -> Callable[..., torch.Tensor]:
    """A norm that rank 1 rounds differently."""
    exact = nn.utils.get_total_norm
    return lambda *arguments: exact(*arguments) * (1.0 + 1e-6 * world.rank)


def clipped(world: World, folder: Path, is_alike: bool) -> list[float]:
    layer = nn.Linear(4, 1)
    layer.weight.grad = torch.full((1, 4), 0.3)
    with patch.object(nn.utils, "get_total_norm", rounding(world)), joined(world, folder) as group:
        clip([*layer.parameters()], 0.1, replace(group, is_alike=is_alike))
    return [float(value) for value in layer.weight.grad.flatten()]


def test_all_ranks_clip_by_the_norm_of_rank_0(tmp_path: Path) -> None:
    first, second = in_ranks(2, clipped, tmp_path, False)
    assert first == second
    assert sum(value**2 for value in first) == pytest.approx(0.1**2, rel=1e-4)


def test_a_single_process_clips_as_torch_does() -> None:
    ours, theirs = nn.Linear(4, 1), nn.Linear(4, 1)
    for layer in (ours, theirs):
        layer.weight.grad = torch.tensor([[0.3, -0.7, 0.11, 1e-3]])
    clip([*ours.parameters()], 0.1, process_group.Group(World.single(), torch.device("cpu")))
    nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
    assert torch.equal(ours.weight.grad, theirs.weight.grad)


def train_rank(world: World, path: Path, is_alike: bool) -> str:
    assigned = Assignment(device=torch.device("cpu"), is_alike=is_alike)
    with (
        patch.object(nn.utils, "get_total_norm", rounding(world)),
        patch.object(process_group, "assign_device", lambda *_: assigned),
    ):
        return worker.run_attempt(RunDir(path), world, StopFlag()).value


@pytest.mark.parametrize("is_alike", [False, True])
def test_ranks_on_unlike_devices_keep_equal_weights_unless_taken_for_alike(lab: Lab, is_alike: bool) -> None:
    """The run compares weights after each step; unlike devices that are taken for alike diverge."""
    run = lab.start(tiny(lab.folder, "train.epochs=1", "train.clip_norm=0.001", "train.check_ranks_every=1"))
    ended = run_ranks(2, train_rank, run.path, is_alike)
    if is_alike:
        assert all("RanksDiverged" in end.error for end in ended)
    else:
        assert [end.value for end in ended] == ["finished"] * 2
