"""The running averages of BatchNorm: one update per step, the mean over the passes of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.toolkit.support.ranks import in_ranks, joined
from toolkit.distributed.process_group import Group
from toolkit.distributed.running_averages import RunningAverages, averages_of
from toolkit.system.world import World

CPU = torch.device("cpu")
ALONE = Group(World.single(), CPU)
#: The samples of the passes of a step.
PARTS = [
    torch.randn(samples, 3, generator=torch.Generator().manual_seed(samples)) for samples in (4, 2, 7, 3)
]


def averages_after(
    parts: Sequence[tuple[int, torch.Tensor]], group: Group, rows: int = len(PARTS), steps: int = 2
) -> dict[str, torch.Tensor]:
    """The averages after equal steps with these passes; each is a number and its samples."""
    model = nn.BatchNorm1d(3)
    averages = RunningAverages(model, group, rows)
    for _ in range(steps):
        averages.start()
        for row, samples in parts:
            with averages.forward_pass(row, len(samples)):
                model(samples)
        averages.update()
    return averages_of(model)


def bytes_of_a_rank(world: World, folder: Path) -> list[bytes]:
    own = [*enumerate(PARTS)][world.rank * 2 : world.rank * 2 + 2]
    with joined(world, folder) as group:
        return [value.numpy().tobytes() for value in averages_after(own, group).values()]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_one_pass_in_a_step_changes_them_as_torch_does(momentum: float | None) -> None:
    ours, theirs = nn.BatchNorm1d(3, momentum=momentum), nn.BatchNorm1d(3, momentum=momentum)
    averages = RunningAverages(ours, ALONE, 1)
    for samples in PARTS:
        averages.start()
        with averages.forward_pass(0, len(samples)):
            ours(samples)
        averages.update()
        theirs(samples)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_several_passes_count_as_one_update_by_their_samples() -> None:
    found = averages_after([*enumerate(PARTS)], ALONE, steps=1)
    samples = torch.tensor([float(len(part)) for part in PARTS])
    means = torch.stack([part.mean(0) for part in PARTS])
    torch.testing.assert_close(found["running_mean"], 0.1 * (samples @ means) / samples.sum())
    assert found["num_batches_tracked"] == 1


def test_two_ranks_have_the_same_bytes_as_one(tmp_path: Path) -> None:
    alone = [value.numpy().tobytes() for value in averages_after([*enumerate(PARTS)], ALONE).values()]
    assert in_ranks(2, bytes_of_a_rank, tmp_path) == [alone, alone]


def test_a_pass_without_samples_or_with_an_error_changes_nothing() -> None:
    model = nn.BatchNorm1d(3)
    averages = RunningAverages(model, ALONE, 1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    averages.start()
    with averages.forward_pass(0, 0):
        model(PARTS[0])
    with pytest.raises(ZeroDivisionError), averages.forward_pass(0, 4):
        _ = model(PARTS[0]) / (1 // 0)
    torch.testing.assert_close(model.state_dict(), before)


def test_only_norms_with_running_averages_have_some() -> None:
    layers = nn.BatchNorm2d(1, track_running_stats=False), nn.InstanceNorm1d(1), nn.LayerNorm(1)
    assert not RunningAverages(nn.Sequential(*layers), ALONE, 1)
    assert RunningAverages(nn.Sequential(*layers, nn.InstanceNorm1d(1, track_running_stats=True)), ALONE, 1)
