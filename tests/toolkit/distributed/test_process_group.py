"""Ranks join as one group and leave it; what libraries expect in the environment is there."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from tests.toolkit.support.ranks import in_ranks, joined, run_ranks
from toolkit.config.schema import Train
from toolkit.distributed import process_group
from toolkit.distributed.process_group import Group
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

EXPORTED = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
)


def join_rank(world: World, folder: Path) -> dict[str, Any]:
    before = {name: os.environ.get(name) for name in EXPORTED}
    with joined(world, folder) as group:
        found: dict[str, Any] = {
            "environment": {name: os.environ[name] for name in EXPORTED},
            "sum": group.sum(torch.tensor([world.rank + 1.0])).item(),
            "rows": group.begin_rows(np.diag(np.arange(1.0, world.size + 1))[world.rank] * 1.0)().tolist(),
            "agreed": group.agree({"from": world.rank, "none": None}),
        }
        group.barrier()
    found["left"] = not torch.distributed.is_initialized()
    found["as it was"] = {name: os.environ.get(name) for name in EXPORTED} == before
    return found


def join_twice(world: World, folder: Path) -> list[float]:
    return [join_rank(world, folder / str(time))["sum"] for time in range(2)]


@pytest.fixture(scope="module")
def found_by_rank(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return in_ranks(3, join_rank, tmp_path_factory.mktemp("run"))


def test_every_rank_has_the_variables_that_libraries_expect(found_by_rank: list[dict[str, Any]]) -> None:
    ports = {found["environment"].pop("MASTER_PORT") for found in found_by_rank}
    assert len(ports) == 1
    assert int(ports.pop()) > 0
    for rank, found in enumerate(found_by_rank):
        assert found["environment"] == {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "3",
            "LOCAL_WORLD_SIZE": "3",
            "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
        }


def test_sums_and_rows_are_the_same_on_every_rank(found_by_rank: list[dict[str, Any]]) -> None:
    for found in found_by_rank:
        assert found["sum"] == 6.0
        assert found["rows"] == [1.0, 2.0, 3.0]


def test_leaving_the_group_restores_the_environment(found_by_rank: list[dict[str, Any]]) -> None:
    assert all(found["left"] and found["as it was"] for found in found_by_rank)


def test_processes_can_join_two_groups_in_succession(tmp_path: Path) -> None:
    assert in_ranks(2, join_twice, tmp_path) == [[3.0, 3.0]] * 2


def test_single_process_joins_without_a_rendezvous(tmp_path: Path) -> None:
    (found,) = in_ranks(1, join_rank, tmp_path)
    assert (found["sum"], found["agreed"]["from"], found["rows"]) == (1.0, 0, [1.0])
    assert found["environment"]["WORLD_SIZE"] == "1"
    assert list(tmp_path.iterdir()) == []


def fail_to_come(world: World, folder: Path) -> float:
    train = Train(device="cpu", rendezvous_timeout_s=0.3)
    if world.rank == 1:
        return 0.0
    with process_group.join(RunDir(folder), world, train):
        return 1.0


def test_missing_rank_is_named(tmp_path: Path) -> None:
    first, second = run_ranks(2, fail_to_come, tmp_path)
    assert first.error.startswith("RendezvousError: 1 of 2 ranks did not arrive")
    assert "rank 1." in first.error
    assert second.value == 0.0


def write_before_a_barrier(world: World, folder: Path) -> bool:
    written = folder / "written"
    with joined(world, folder) as group:
        # No backend sums on this device, as gloo does not stop the host for what lies on a GPU.
        group = replace(group, device=torch.device("meta"))
        if world.is_main:
            written.write_text("all of it")
        group.barrier()
        return written.exists()


def test_barrier_blocks_the_host_on_any_device(tmp_path: Path) -> None:
    assert in_ranks(2, write_before_a_barrier, tmp_path) == [True, True]


def test_group_of_one_returns_what_it_is_given() -> None:
    group = Group(World.single(), torch.device("cpu"))
    tensor, rows = torch.ones(2), np.ones(2)
    assert group.sum(tensor) is tensor
    assert group.begin_rows(rows)() is rows
    assert group.gather("a") == ["a"]
    group.barrier()


def join_unproven(world: World, folder: Path) -> None:
    """As where a stranger was faster than rank 1 at a connection of gloo."""
    unknown = patch.object(process_group, "derive", lambda secret, purpose: bytes(32))
    with unknown if world.rank == 1 else nullcontext():
        join_rank(world, folder)


def test_gloo_connection_without_the_secret_is_refused(tmp_path: Path) -> None:
    for rank, ended in enumerate(run_ranks(3, join_unproven, tmp_path)):
        assert ended.error.startswith("RendezvousError: gloo has connected"), ended.error
        assert rank == 1 or "of rank 1" in ended.error
