"""The sums of a step are the same on every rank and independent of the number of ranks."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.toolkit.support.ranks import in_ranks, joined
from toolkit.distributed.reduction import block
from toolkit.distributed.step_sync import StepSync
from toolkit.system.world import World
from toolkit.task import Loss

ROWS = 8
CPU = torch.device("cpu")


def loss(number: int, value: float | None = None) -> Loss:
    """Losses so different in magnitude that the order of adding shows."""
    total = math.pi * 10.0 ** (3 * (number % 5) - 4) if value is None else value
    sums = torch.tensor([number / 7, -number / 3], dtype=torch.float64)
    return Loss(total=torch.tensor(total), count=number + 1, tokens=10 * number, sums=sums)


def exchange_rank(world: World, folder: Path, bad: float | None) -> list[dict[str, Any]]:
    """Two steps: all micro-batches, then only the first three."""
    with joined(world, folder) as group:
        sync = StepSync(group.device, ROWS, ("correct", "other"))
        own = block(world.rank, world.size, ROWS)
        for number in own:
            sync.add(number, loss(number, bad if number == 5 else None))
        rows = sync.local_rows(own.start, False)
        first = sync.combine(group.begin_rows(rows)())
        for number in own:
            if number < 3:
                sync.add(number, loss(number))
        second = sync.combine(group.begin_rows(sync.local_rows(own.start, False))())
        return [asdict(first) | {"finite": first.is_finite}, asdict(second) | {"finite": second.is_finite}]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    (answer,) = in_ranks(1, exchange_rank, tmp_path_factory.mktemp("run"), None)
    return list(answer)


def test_sums_cover_exactly_the_micro_batches_of_the_step(alone: list[dict[str, Any]]) -> None:
    first, second = alone
    assert first["count"] == sum(range(1, 9))
    assert first["tokens"] == 10 * sum(range(8))
    assert first["loss"] == pytest.approx(sum(float(loss(n).total) for n in range(8)))
    assert first["sums"] == {"correct": pytest.approx(4.0), "other": pytest.approx(-28 / 3)}
    assert (second["count"], second["tokens"]) == (6, 30)
    assert second["loss"] == pytest.approx(sum(float(loss(n).total) for n in range(3)))
    assert not first["stop"]
    assert first["finite"]


@pytest.mark.parametrize("size", [2, 3, 8])
def test_sums_are_the_same_on_every_rank_for_any_world_size(
    size: int, alone: list[dict[str, Any]], tmp_path: Path
) -> None:
    for first, second in in_ranks(size, exchange_rank, tmp_path, None):
        assert first == alone[0]
        assert second == alone[1]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_loss_of_one_row_is_known_to_all_ranks(bad: float, tmp_path: Path) -> None:
    for first, second in in_ranks(2, exchange_rank, tmp_path, bad):
        assert not first["finite"]
        assert first["bad_rows"] == (5,)
        assert second["finite"]
        assert second["bad_rows"] == ()


def test_losses_are_summed_in_double_precision() -> None:
    sync = StepSync(CPU, 2, ())
    for row, value in enumerate((1e8, 1.0)):
        sync.add(row, Loss(total=torch.tensor(value), count=1, tokens=0, sums=torch.zeros(0)))
    assert sync.combine(sync.local_rows(0, False)).loss == np.float64(1e8) + 1.0
