"""The world of a process comes from the launcher's variables, which must be complete."""

from __future__ import annotations

import pytest

from toolkit.errors import UserError
from toolkit.system.world import NONCE_VARIABLE, World

TORCHRUN = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "node7",
    "MASTER_PORT": "29511",
    "TORCHELASTIC_RESTART_COUNT": "2",
}


def test_a_process_without_variables_is_alone() -> None:
    world = World.from_environment({"PATH": "/bin"})
    assert (world.rank, world.size, world.local_rank, world.local_size) == (0, 1, 0, 1)
    assert world.is_main
    assert world.nonce


def test_variables_of_torchrun_are_read() -> None:
    world = World.from_environment(TORCHRUN)
    assert (world.rank, world.size, world.local_rank, world.local_size) == (5, 8, 1, 4)
    assert (world.node, world.nodes) == (1, 2)
    assert (world.master_addr, world.master_port) == ("node7", 29511)
    assert not world.is_main


def test_each_start_has_a_nonce_of_its_own() -> None:
    assert World.single().nonce != World.single().nonce
    again = TORCHRUN | {"TORCHELASTIC_RESTART_COUNT": "3"}
    assert World.from_environment(TORCHRUN).nonce != World.from_environment(again).nonce


def test_master_address_is_ignored_under_the_local_launcher() -> None:
    world = World.from_environment(
        {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", NONCE_VARIABLE: "local-a"}
        | {"MASTER_ADDR": "left over from elsewhere"}
    )
    assert (world.nonce, world.master_addr, world.master_port) == ("local-a", None, None)
    assert (world.local_size, world.nodes) == (2, 1)


def test_missing_variables_are_named() -> None:
    with pytest.raises(UserError, match=r"RANK is set but LOCAL_RANK, WORLD_SIZE is not"):
        World.from_environment({"RANK": "0"})


@pytest.mark.parametrize("text", ["", "two", "1.5", "0x1"])
def test_a_variable_that_is_not_a_number_is_named(text: str) -> None:
    with pytest.raises(UserError, match=f"WORLD_SIZE is '{text}', expected a whole number"):
        World.from_environment(TORCHRUN | {"WORLD_SIZE": text})


def test_several_ranks_without_a_master_address_are_refused() -> None:
    with pytest.raises(UserError, match="MASTER_ADDR is not set: start the ranks with torchrun"):
        World.from_environment({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"})


@pytest.mark.parametrize("changes", [{"RANK": "8"}, {"RANK": "-1"}, {"LOCAL_RANK": "4"}, {"WORLD_SIZE": "0"}])
def test_rank_outside_its_world_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(UserError, match="outside"):
        World.from_environment(TORCHRUN | changes)
