"""The address at which the processes of a command on several hosts meet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.distributed.secure import addresses
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command import meeting
from toolkit.workloads.custom.command.stopping import KILL_AFTER_S

COMPUTE, STORAGE = "10.1.0.11", "10.2.0.11"


def found(run: RunDir, world: World) -> meeting.Place:
    place = meeting.find(run, world, 0.0, lambda: False)
    assert place
    return place


def told(folder: Path, world: World) -> str:
    meeting.publish(RunDir(folder), world, 1)
    return found(RunDir(folder), world).address


def test_processes_on_several_hosts_meet_at_the_address_known_to_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: ["127.0.0.1", STORAGE, COMPUTE])
    two = World(rank=0, size=2, local_rank=0, local_size=1, nodes=2, nonce="7.0.0", known_as=(COMPUTE,))
    assert told(tmp_path, two) == COMPUTE
    alone = World(rank=0, size=2, local_rank=0, local_size=2, nonce="8.0.0", known_as=(COMPUTE,))
    assert told(tmp_path, alone) == "127.0.0.1"


def test_rank_that_starts_late_begins_with_the_same_save_as_rank_0(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.checkpoints.mkdir()
    (run.checkpoints / "step_5").touch()
    world = World(rank=0, size=2, local_rank=0, local_size=2, nonce="7.0.0")
    meeting.publish(run, world, 1)
    # Rank 0 has begun.
    (run.checkpoints / "config.json").touch()
    late = World(rank=1, size=2, local_rank=1, local_size=2, nonce="7.0.0")
    environ = meeting.environment(run, late, found(run, late), by_node=False, params="")
    assert environ["STK_LATEST_CHECKPOINT"] == str(run.checkpoints / "step_5")


@pytest.mark.parametrize("is_of_rank", [True, False])
def test_command_is_told_only_of_the_launcher_of_its_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_of_rank: bool
) -> None:
    """The launcher of another run, whose command submitted this run, does not wait for it."""
    monkeypatch.setenv("STK_LAUNCHER", str(os.getppid() if is_of_rank else os.getpid()))
    run, world = RunDir(tmp_path), World.single()
    meeting.publish(run, world, 1)
    environ = meeting.environment(run, world, found(run, world), by_node=False, params="")
    assert environ["STK_RESTARTER"] == (str(os.getppid()) if is_of_rank else "")
    assert "STK_LAUNCHER" not in environ


def test_torchrun_grants_its_processes_as_much_time_as_stk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = pytest.importorskip("torch.distributed.launcher.api")
    run, world = RunDir(tmp_path), World.single()
    meeting.publish(run, world, 1)
    environ = meeting.environment(run, world, found(run, world), by_node=True, params="")
    monkeypatch.setattr("os.environ", environ)
    config = launcher.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=1)
    assert config.shutdown_timeout == KILL_AFTER_S
