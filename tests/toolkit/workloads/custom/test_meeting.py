"""The address at which the processes of a command on several hosts meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.distributed.secure import addresses
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command import meeting

COMPUTE, STORAGE = "10.1.0.11", "10.2.0.11"


def told(folder: Path, world: World) -> str:
    run = RunDir(folder)
    meeting.publish(run, world, 1)
    place = meeting.find(run, world, 0.0, lambda: False)
    assert place
    return place.address


def test_processes_on_several_hosts_meet_at_the_address_known_to_the_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_every_address", lambda: ["127.0.0.1", STORAGE, COMPUTE])
    two = World(rank=0, size=2, local_rank=0, local_size=1, nodes=2, nonce="7.0.0", known_as=(COMPUTE,))
    assert told(tmp_path, two) == COMPUTE
    alone = World(rank=0, size=2, local_rank=0, local_size=2, nonce="8.0.0", known_as=(COMPUTE,))
    assert told(tmp_path, alone) == "127.0.0.1"
