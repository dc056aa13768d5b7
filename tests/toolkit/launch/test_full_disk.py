"""A disk that fills during training: the run stops with a message and resumes once there is space."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mounts import fill, small_disk
from tests.support.patience import until
from tests.toolkit.launch.test_launcher import ended, launched, said
from tests.toolkit.support.tiny import assert_equal_runs, metrics_lines, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.exit_codes import ExitCode
from toolkit.files import append_json_line, read_json
from toolkit.launch.launcher import run_as_coordinator
from toolkit.launch.machines.coordination import Nodes
from toolkit.launch.machines.layout import Machines
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.disk_reserve import keep_reserve
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder):
        yield folder


class FillsDisk:
    """A launcher whose ranks end when the disk has become full, with or without a record of their own."""

    is_asked_to_stop = False

    def __init__(self, run: RunDir, disk: Path, *, is_told: bool) -> None:
        self._run, self._disk, self._is_told = run, disk, is_told
        self.starts = 0

    def start(self, nonce: str) -> list[int]:
        self.starts += 1
        append_json_line(
            self._run.attempts, {"attempt": 1, "nonce": nonce, "first_step": 0, "hosts": ["here"]}
        )
        fill(self._disk)
        if self._is_told:
            record = failure_record(nonce, "full_disk", "full", rank=1, host="here", phase="save", step=7)
            assert write_first(self._run, record)
        return [0, 4]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_full_disk_is_recorded_and_stops_the_run(
    lab: Lab, disk: Path, capfd: pytest.CaptureFixture[str], is_told: bool
) -> None:
    run = create_run(tiny(lab.folder), disk)
    keep_reserve(run)
    launcher = FillsDisk(run, disk, is_told=is_told)
    code = run_as_coordinator(run, launcher, Nodes(Machines.alone(2)))
    assert (code, launcher.starts) == (ExitCode.FAILED, 1)
    assert read_json(run.failure)["class"] == "full_disk"
    assert [attempt.why for attempt in read_attempts(run)] == ["full_disk"]
    assert os.strerror(errno.ENOSPC) in capfd.readouterr().err


def test_a_last_save_that_fails_on_a_full_disk_stops_the_run(lab: Lab) -> None:
    """Another attempt would train for as long, and end like this one."""
    run = create_run(tiny(lab.folder), lab.folder / "last_save")
    launcher = launched(run, 1, "; ".join(["enospc at=save:open"] * 50))
    assert ended(launcher) == ExitCode.FAILED
    assert [attempt.why for attempt in read_attempts(run)] == ["full_disk"]


@pytest.mark.slow
def test_a_run_stopped_by_a_full_disk_resumes_once_there_is_space(lab: Lab, disk: Path) -> None:
    experiment = tiny(lab.folder, "train.epochs=30", "train.eval_per_epoch=1")
    run = create_run(experiment, disk)
    launcher = launched(run, 2)
    until(lambda: metrics_lines(run))
    filling = fill(disk)
    output = said(launcher)
    assert launcher.returncode == ExitCode.FAILED
    assert "Traceback" not in output
    failure = read_json(run.failure)
    assert failure["class"] == "full_disk"
    assert os.strerror(errno.ENOSPC) in failure["message"]
    assert read_attempts(run)[-1].why == failure["class"]
    filling.unlink()
    assert ended(launched(run, 1)) == 0
    assert_equal_runs(run, lab.train(experiment, Attempt()))
