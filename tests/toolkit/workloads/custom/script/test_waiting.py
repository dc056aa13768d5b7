"""Ranks wait for each other before a collective call of a script, and say for whom."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import torch.distributed as dist

from tests.support.patience import PATIENCE_S, until
from tests.toolkit.support.ranks import in_ranks
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.script import waiting
from toolkit.workloads.custom.script.current_run import CurrentRun
from toolkit.workloads.custom.script.place import Place


def test_rank_that_waits_for_others_names_them(tmp_path: Path) -> None:
    """As in `if rank == 0: with run.checkpoint(…)`; here rank 1 comes in the end."""
    assert in_ranks(2, _saves_late, tmp_path) == [[10, 20], [10, 20]]
    (line,) = (tmp_path / "stderr_0").read_text().splitlines()
    assert "test_waiting.py:" in line
    assert "run.checkpoint(20): rank 1 has not called it" in line
    assert not (tmp_path / "stderr_1").read_text()


def test_ranks_wait_in_each_process_group_that_they_make(tmp_path: Path) -> None:
    assert in_ranks(2, _saves_in_three_groups, tmp_path) == [[1, 2, 3], [1, 2, 3]]


def test_missing_ranks_are_counted() -> None:
    assert waiting._who(list(range(1, 12)), 12).startswith("11 of 12 ranks (1, 2, 3, 4, 5, 6, 7, 8, …) have")


def _saves_in_three_groups(world: World, folder: Path) -> list[int]:
    """Save in one process group after the other, at one address."""
    run = CurrentRun(Place(run=RunDir(folder / "run"), rank=world.rank, size=world.size))
    address = folder / "address"
    if world.rank == 0:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        address.with_suffix(".new").write_text(f"tcp://127.0.0.1:{port}")
        address.with_suffix(".new").rename(address)
    until(address.exists)
    for step in (1, 2, 3):
        dist.init_process_group("gloo", address.read_text(), rank=world.rank, world_size=world.size)
        with run.checkpoint(step, keep=3) as saved:
            (saved / f"{world.rank}.txt").write_text("state")
        dist.destroy_process_group()
        # Or rank 1 would find rank 0's earlier store.
        if world.rank == 0:
            (folder / f"destroyed_{step}").touch()
        until((folder / f"destroyed_{step}").exists)
    return list(run._place.run.checkpoint_steps())


def _saves_late(world: World, folder: Path) -> list[int]:
    """Save twice; rank 1 comes to the second save after rank 0 has said that it waits."""
    dist.init_process_group("gloo", f"file://{folder}/store", rank=world.rank, world_size=world.size)
    run = CurrentRun(Place(run=RunDir(folder / "run"), rank=world.rank, size=world.size))
    told = folder / "stderr_0"
    for step in (10, 20):
        if step == 20:
            sys.stderr = (folder / f"stderr_{world.rank}").open("w", buffering=1)
            waiting._SAY_AFTER_S = 0.0 if world.rank == 0 else PATIENCE_S
            if world.rank == 1:
                until(lambda: told.exists() and told.read_text())
        with run.checkpoint(step) as saved:
            (saved / f"{world.rank}.txt").write_text("state")
    return list(run._place.run.checkpoint_steps())
