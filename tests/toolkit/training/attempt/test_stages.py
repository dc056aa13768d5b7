"""An attempt of one rank: what it leaves in the run's folder, and when it is refused."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from filelock import FileLock

from tests.toolkit.support.tiny import tiny
from toolkit.errors import RunBusy
from toolkit.files import read_json, read_json_lines
from toolkit.monitoring.usage.values import read_usage
from toolkit.reliability.fault_injection import InjectedFault
from toolkit.reliability.stop import StopFlag
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker

pytestmark = pytest.mark.usefixtures("threads_restored")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    experiment = tiny(tmp_path / "data", "train.epochs=1", "train.eval_per_epoch=1")
    return create_run(experiment, tmp_path / "experiments")


def test_finished_run_has_all_documented_files(run: RunDir) -> None:
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    result = read_json(run.result)
    assert result.keys() == {"state", "step", "epoch", "metrics", "best", "attempts", "seconds"}
    assert run.report_html.is_file()
    written = {"validation_predictions.tsv", "test_predictions.tsv", "weights.pt"}
    assert {file.name for file in run.artifacts.iterdir()} == written
    (attempt,) = read_json_lines(run.attempts)
    assert (attempt["attempt"], attempt["first_step"], attempt["resumed"]) == (1, 0, False)
    assert (attempt["last_step"], attempt["why"], attempt["world_size"]) == (8, "finished", 1)
    assert attempt["precision"] == "fp32"
    (rank,) = read_json_lines(run.ranks(attempt["nonce"]))
    assert (rank["rank"], rank["pid"], rank["device"]) == (0, os.getpid(), "cpu")
    assert [usage.rank for usage in read_usage(run, attempt["nonce"])] == [0]
    assert "rank 0 of 1" in run.log(attempt["nonce"], 0).read_text()
    progress = read_json(run.progress)
    assert (progress["attempt"], progress["step"], progress["total_steps"]) == (1, 8, 8)
    assert not run.failure.exists()
    assert not [
        each for each in logging.getLogger("toolkit").handlers if isinstance(each, logging.StreamHandler)
    ]


def test_a_failed_attempt_leaves_the_progress_of_its_last_step(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STK_FAULTS", "raise at=forward step=3")
    with pytest.raises(InjectedFault):
        worker.run_attempt(run, World.single(), StopFlag())
    progress = read_json(run.progress)
    assert (progress["step"], progress["epoch"]) == (3, 0.375)


def test_second_worker_on_a_live_run_is_refused_and_changes_no_file(run: RunDir) -> None:
    with FileLock(run.alive):
        before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()}
        with pytest.raises(RunBusy, match="is being trained by another process"):
            worker.run_attempt(run, World.single(), StopFlag())
        after = {
            path: path.stat().st_mtime_ns
            for path in run.path.rglob("*")
            if path.parent != run.logs and path.is_file()
        }
    assert after == before
