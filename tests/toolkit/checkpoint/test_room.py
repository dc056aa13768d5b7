"""A failed save ends no training and changes no checkpoint; the next one works once there is space."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mounts import mount, read_only
from tests.toolkit.support.checkpointing import (
    IDENTITY,
    checkpoints,
    expected_facts,
    facts,
    loaded,
    save,
    save_state,
    state_at,
    write,
)
from tests.toolkit.support.ranks import in_ranks, run_ranks
from tests.toolkit.support.tiny import assert_equal_runs, events, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab, train_rank
from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.verification import verify
from toolkit.errors import CheckpointError
from toolkit.reliability.fault_injection import SAVE_POINTS
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

BEFORE_THE_NAME = SAVE_POINTS[: SAVE_POINTS.index("save:after_rename")]


class Broken:
    """A disk on which every save fails at a point, until it is mended."""

    def __init__(self, point: str = "save:write", error: int = errno.ENOSPC) -> None:
        self._point = point
        self._error = error
        self.mended = False

    def at(self, point: str, step: int) -> None:
        if point == self._point and not self.mended:
            raise OSError(self._error, os.strerror(self._error))


def at(step: int, best: int = 10) -> TrainState:
    state = state_at(step)
    state.progress.best_step = best
    return state


def hidden(run: RunDir) -> list[str]:
    return [entry.name for entry in run.checkpoints.iterdir() if entry.name.startswith(".")]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE])
def test_failed_save_does_not_end_training(saved: RunDir, error: int) -> None:
    disk = Broken(error=error)
    saving = checkpoints(saved, faults=disk)
    write(saving, at(30), needed=False)
    (event,) = events(saved, "save_failed")
    assert (event["step"], event["failures"]) == (30, 1)
    assert os.strerror(error) in event["reason"]
    assert "step_00000030" in event["reason"]
    assert saved.checkpoint_steps() == [10, 20]
    assert facts(loaded(saved)) == expected_facts(20)
    disk.mended = True
    write(saving, at(40), needed=False)
    assert loaded(saved).progress.step == 40


@pytest.mark.parametrize("point", BEFORE_THE_NAME)
def test_failed_save_leaves_no_partial_checkpoint(saved: RunDir, point: str) -> None:
    saving = checkpoints(saved, faults=Broken(point))
    write(saving, at(30), needed=False)
    assert events(saved, "save_failed")
    assert saved.checkpoint_steps() == [10, 20]
    assert hidden(saved) == []


def test_consecutive_failed_saves_are_counted(saved: RunDir) -> None:
    disk = Broken()
    saving = checkpoints(saved, faults=disk)
    for step in (30, 31, 32):
        disk.mended = step == 32
        write(saving, at(step), needed=False)
    disk.mended = False
    write(saving, at(33), needed=False)
    assert [event["failures"] for event in events(saved, "save_failed")] == [1, 2, 1]


def test_last_save_is_retried_after_a_failure(saved: RunDir) -> None:
    """The fault may have been a passing one, and there is no other chance."""

    disk = Broken()
    saving = checkpoints(saved, faults=disk)
    saving.save(at(30))
    saving.close()
    disk.mended = True
    saving.wait()
    assert loaded(saved).progress.step == 30
    assert events(saved, "save")[-1]["waited_s"] == 0


def test_failed_deletion_of_old_checkpoints_keeps_the_new_one(saved: RunDir) -> None:
    saving = checkpoints(saved, faults=Broken("save:delete", errno.EIO))
    save(saved, 30, best=10)
    write(saving, at(40))
    assert loaded(saved).progress.step == 40
    assert [event["step"] for event in events(saved, "tidy_failed")] == [40]


def test_unsaved_best_checkpoint_is_saved_before_any_newer_one(
    saved: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise a newer checkpoint would name a best one that is missing at the end of the run."""
    disk = Broken()
    saving = checkpoints(saved, faults=disk)
    saving.save(at(30, best=30))
    for step in (31, 32):
        saving.save(at(step, best=30), needed=False)
        saving.close()
        assert saved.checkpoint_steps() == [10, 20]
        assert "step_00000030" in caplog.messages[-1]
        assert "the newest checkpoint is of step 20, and no later step" in caplog.messages[-1]
    disk.mended = True
    write(saving, at(33, best=30), needed=False)
    assert saved.checkpoint_steps() == [20, 30]
    assert facts(loaded(saved)) == facts(at(30, best=30))
    write(saving, at(34, best=30), needed=False)
    assert saved.checkpoint_steps() == [30, 34]


def test_last_save_saves_the_unsaved_best_checkpoint_first(saved: RunDir) -> None:
    disk = Broken()
    saving = checkpoints(saved, faults=disk)
    saving.save(at(30, best=30))
    saving.save(at(31, best=30))
    with pytest.raises(CheckpointError, match=r"cannot write .*step_00000030: No space left"):
        saving.wait()
    assert saved.checkpoint_steps() == [10, 20]
    disk.mended = True
    write(saving, at(32, best=30))
    assert saved.checkpoint_steps() == [30, 32]


def test_unsaved_best_checkpoint_is_dropped_for_a_better_one(saved: RunDir) -> None:
    disk = Broken()
    saving = checkpoints(saved, faults=disk)
    saving.save(at(30, best=30))
    saving.close()
    disk.mended = True
    write(saving, at(40, best=40))
    assert saved.checkpoint_steps() == [20, 40]


def test_save_checks_the_free_space_before_it_writes(saved: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    size = events(saved, "save")[-1]["bytes"]
    usage = shutil.disk_usage(saved.path)._replace(free=int(1.19 * size))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    saving = checkpoints(saved, faults=Broken("save:open", errno.EIO))
    write(saving, at(30), needed=False)
    assert "No space left on device: 0.00" in events(saved, "save_failed")[0]["reason"]


@pytest.fixture
def small_disk(run: RunDir) -> Iterator[Path]:
    """A file system of its own, of 96 kB, where the checkpoints go."""
    run.checkpoints.mkdir()
    mount("-t", "tmpfs", "-o", "size=96k", "tmpfs", run.checkpoints)
    yield run.checkpoints
    subprocess.run(["umount", run.checkpoints], check=True)


@pytest.mark.parametrize("room", [pytest.param(1.2, id="foreseen"), pytest.param(0.0, id="met on the way")])
def test_save_on_a_full_disk_fails_and_works_again_with_free_space(
    run: RunDir, small_disk: Path, monkeypatch: pytest.MonkeyPatch, room: float
) -> None:
    monkeypatch.setattr("toolkit.checkpoint.writing.commit._ROOM", room)
    save(run, 10, best=10)
    saving, filler = checkpoints(run), small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    filler.write_bytes(bytes(free - 4096))
    write(saving, at(20), needed=False)
    assert "No space left on device" in events(run, "save_failed")[0]["reason"]
    assert (run.checkpoint_steps(), hidden(run)) == ([10], [])
    assert facts(loaded(run)) == expected_facts(10)
    filler.unlink()
    write(saving, at(30), needed=False)
    assert loaded(run).progress.step == 30


def save_without_room(world: World, path: Path) -> None:
    """Save where there is room for a manifest and no more; a process of its own, for pytest writes too."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    save_state(RunDir(path), state_at(3))


def test_save_beyond_the_file_size_limit_names_the_path(run: RunDir) -> None:
    (ended,) = run_ranks(1, save_without_room, run.path)
    assert re.match(r"CheckpointError: cannot write .*step_00000003: .*File too large", ended.error)
    assert run.checkpoint_steps() == []


def test_save_into_a_file_in_place_of_the_folder_names_the_path(run: RunDir) -> None:
    run.checkpoints.write_text("a file")
    with pytest.raises(CheckpointError, match=r"cannot write .*step_00000003"):
        save_state(run, state_at(3))


def test_save_into_a_read_only_folder_fails_and_keeps_the_checkpoints(saved: RunDir) -> None:
    with read_only(saved.checkpoints):
        saving = checkpoints(saved)
        write(saving, at(30), needed=False)
    reason = events(saved, "save_failed")[0]["reason"]
    assert re.search("Permission denied|Read-only file system", reason)
    assert loaded(saved).progress.step == 20


def test_save_creates_a_missing_checkpoints_folder(saved: RunDir, tmp_path: Path) -> None:
    saved.checkpoints.rename(tmp_path / "elsewhere")
    save_state(saved, at(30, best=30))
    assert saved.checkpoint_steps() == [30]
    verify(saved.checkpoint(30), IDENTITY)


def test_save_does_not_create_a_missing_run_folder(saved: RunDir, tmp_path: Path) -> None:
    saving = checkpoints(saved)
    saved.path.rename(tmp_path / "elsewhere")
    write(saving, at(30), needed=False)
    assert not saved.path.exists()


def train_with_faults(world: World, path: Path, attempt: Attempt, faults: str) -> str:
    os.environ["STK_FAULTS"] = faults
    return train_rank(world, path, attempt)


def test_stop_with_a_failed_save_exits_normally_and_the_resumed_run_is_equal(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    experiment = tiny(tmp_path, "train.logical_ranks=2", "checkpoint.every_steps=2")
    run = lab.start(experiment)
    full = "; ".join(["enospc at=save:open step=5"] * 2)
    assert in_ranks(1, train_with_faults, run.path, Attempt(stop_after=5), full) == ["yielded"]
    assert not run.failure.exists()
    # The second is the last try.
    assert [event["step"] for event in events(run, "save_failed")] == [5, 5]
    assert run.checkpoint_steps()[-1] == 4
    assert in_ranks(1, train_rank, run.path, Attempt()) == ["finished"]
    assert_equal_runs(run, lab.train(experiment, Attempt()))
