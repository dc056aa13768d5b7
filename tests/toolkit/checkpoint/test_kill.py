"""A save that is killed at any point leaves the old or the new checkpoint, and the next save works."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.toolkit.support.checkpointing import (
    IDENTITY,
    expected_facts,
    facts,
    loaded,
    save,
    save_state,
    state_at,
)
from tests.toolkit.support.ranks import in_ranks
from toolkit.checkpoint.verification import verify
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

#: How the killed save ended: checkpoint that was loaded then, and whether all was well with it.
Found = tuple[int, bool]


def in_a_child(function: Callable[[], None]) -> bool:
    """Run in a child; whether a signal ended it."""
    child = os.fork()
    if child == 0:
        function()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def what_is_left(run: RunDir, expected: dict[int, Any], later: Any) -> Found:
    """Load as the next attempt would, and save once more."""
    for visible in run.checkpoint_steps():
        verify(run.checkpoint(visible), IDENTITY)
    state = loaded(run)
    step = state.progress.step
    good = facts(state) == expected[step]
    save_state(run, later)
    hidden = [entry for entry in run.checkpoints.iterdir() if entry.name.startswith(".")]
    return step, good and loaded(run).progress.step == 40 and not hidden


#: What Python reports before it happens.
_TOUCHING = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.symlink",
    "os.remove",
    "os.rmdir",
    "os.link",
    "shutil.rmtree",
)


def _die_at(count: int) -> None:
    """Kill this process with -9 when it touches the file system for the count-th time."""
    left = count

    def hook(event: str, arguments: Any) -> None:
        nonlocal left
        if event in _TOUCHING or event in ("os.fsync", "os.write"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    fsync, write = os.fsync, os.write

    def flush(descriptor: int) -> None:
        hook("os.fsync", ())
        fsync(descriptor)

    def put(descriptor: int, data: Any) -> int:
        if left == 1:
            # Torn: the rest is missing.
            write(descriptor, data[: len(data) // 2])
        hook("os.write", ())
        return write(descriptor, data)

    os.fsync, os.write = flush, put  # type: ignore[assignment]
    sys.addaudithook(hook)


def kill_everywhere(world: World, pristine: Path, folder: Path) -> list[Found]:
    """Kill a save at its 1st, 2nd, … file operation, until a save completes."""
    found: list[Found] = []
    saving, later = state_at(30), state_at(40)
    saving.progress.best_step = later.progress.best_step = 10
    expected = {20: expected_facts(20), 30: facts(saving)}

    def save_until(count: int, run: RunDir) -> None:
        _die_at(count)
        save_state(run, saving)

    for count in range(1, 500):
        run = RunDir(folder / str(count))
        shutil.copytree(pristine, run.path, symlinks=True)
        killed = in_a_child(lambda count=count, run=run: save_until(count, run))  # type: ignore[misc]
        if not killed:
            return found
        found.append(what_is_left(run, expected, later))
        shutil.rmtree(run.path)
    raise AssertionError("the save never ended")


def test_save_killed_anywhere_leaves_a_whole_checkpoint(run: RunDir, tmp_path: Path) -> None:
    save(run, 10, 15, 20, best=10)
    (found,) = in_ranks(1, kill_everywhere, run.path, tmp_path)
    steps = [step for step, _ in found]
    assert [number for number, (_, is_well) in enumerate(found) if not is_well] == []
    # First always the one of step 20, later always the new one.
    assert steps == sorted(steps)
    assert set(steps) == {20, 30}
    assert steps.count(20) > 15


def test_load_removes_temporary_folders_of_earlier_attempts(saved: RunDir) -> None:
    shutil.copytree(saved.checkpoint(20), saved.checkpoints / ".step_00000030.7.0.1.tmp")
    shutil.copytree(saved.checkpoint(20), saved.checkpoints / ".step_00000010.7.0.1.trash")
    assert loaded(saved).progress.step == 20
    left = {entry.name for entry in saved.checkpoints.iterdir()}
    assert left == {"step_00000010", "step_00000020", "best", "last"}
    verify(saved.checkpoint(20), IDENTITY)


def test_the_two_newest_damaged_checkpoints_are_kept(saved: RunDir) -> None:
    for number in (9, 7, 8):
        (saved.checkpoints / f".step_0000000{number}.damaged.170000000000000000{9 - number}").mkdir()
    loaded(saved)
    left = {entry.name[:14] for entry in saved.checkpoints.glob(".*")}
    assert left == {".step_00000007", ".step_00000008"}
