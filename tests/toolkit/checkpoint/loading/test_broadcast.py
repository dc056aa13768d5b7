"""Machines that share no folder with rank 0 get a copy of the checkpoint that is loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.toolkit.support.checkpointing import checkpoints, new_state, save
from tests.toolkit.support.ranks import in_ranks, joined
from toolkit.checkpoint import store
from toolkit.checkpoint.loading.broadcast import broadcast_checkpoint
from toolkit.run.run_dir import MANIFEST, RunDir
from toolkit.system.world import World


def carry(world: World, folder: Path) -> list[str]:
    """Each rank is on a machine of its own, and has its run's folder; what is there in the end."""
    run = RunDir(folder / str(world.rank))
    with joined(world, folder) as group:
        placed = replace(world, local_rank=0, local_size=1)
        broadcast_checkpoint(run.checkpoint(9), replace(group, world=placed, shares_folder=False))
    return sorted(each.name for each in run.checkpoints.iterdir())


@pytest.mark.parametrize(
    "before, after",
    [
        ((3, 6), [3, 9]),
        # The best of the newest may be older. Machine 0 may be another one than before by mistake.
        ((3, 6, 12), [3, 6, 9, 12]),
    ],
)
def test_a_copy_replaces_older_ones_that_rank_0_lacks_unless_there_is_a_newer_one(
    tmp_path: Path, before: tuple[int, ...], after: list[int]
) -> None:
    ours, theirs = RunDir(tmp_path / "0"), RunDir(tmp_path / "1")
    for run, steps in ((ours, (3, 9)), (theirs, before)):
        for step in steps:
            run.checkpoint(step).mkdir(parents=True)
            (run.checkpoint(step) / MANIFEST).write_text("{}")
    for name in (".step_00000006.carried.tmp", "step_of_mine"):
        (theirs.checkpoints / name).mkdir()
    found = [*(f"step_{step:08}" for step in after), "step_of_mine"]
    assert in_ranks(2, carry, tmp_path) == [["step_00000003", "step_00000009"], found]


def warned(world: World, folder: Path) -> str:
    """What a rank with a folder of its own logs when it resumes."""
    with joined(world, folder) as group, pytest.MonkeyPatch.context() as patch:
        said: list[str] = []
        patch.setattr(store.log, "warning", lambda text, *facts: said.append(text % facts))
        run = RunDir(folder / str(world.rank))
        placed = replace(world, local_rank=0, local_size=1)
        apart = replace(group, world=placed, shares_folder=False)
        assert not checkpoints(run, apart).load_latest(new_state())
    return "".join(said)


def test_a_newer_checkpoint_on_another_machine_is_named(tmp_path: Path) -> None:
    """The machines may have been named in another order than before: the first one has no checkpoint."""
    for number in range(2):
        RunDir(tmp_path / str(number)).path.mkdir()
    save(RunDir(tmp_path / "1"), 60)
    first, second = in_ranks(2, warned, tmp_path)
    assert "a checkpoint of step 60, newer than the one that is used" in first
    assert second == ""
