"""Machines that share no folder with rank 0 get a copy of the checkpoint that is loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.toolkit.support.ranks import in_ranks, joined
from toolkit.checkpoint.broadcast import broadcast_checkpoint
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
