"""Each metrics line is written once, even after a resume, and an output error never ends a run."""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
from typing import Any
from unittest.mock import Mock, call

import pytest

from tests.toolkit.support.tiny import metrics_lines
from toolkit.distributed.step_sync import StepTotals
from toolkit.files import append_json_line, read_json
from toolkit.run.run_dir import RunDir
from toolkit.training.output.metrics_writer import MetricsWriter
from toolkit.training.output.progress_display import Display
from toolkit.training.schedule.due_steps import StepSchedule

CALENDAR = StepSchedule(
    steps_per_epoch=10, total_steps=30, log_per_epoch=5, eval_per_epoch=1, save_every=None, compare_every=None
)
TOTALS = StepTotals(loss=6.0, count=8.0, tokens=80.0, stop=False, sums={})
NO_ROOM = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


def metrics_writer(
    run: RunDir, start: int | None = 0, is_main: bool = True, display: Any = None
) -> MetricsWriter:
    """A writer that has started at a step, if one is given."""
    writing = MetricsWriter(run, CALENDAR, is_main, display or Display())
    if start is not None:
        writing.start(start)
    return writing


def steps(run: RunDir) -> list[int]:
    return [line["step"] for line in metrics_lines(run)]


def test_lines_have_time_step_epoch_split_and_the_metrics(run: RunDir) -> None:
    writing = metrics_writer(run)
    writing.count(2, TOTALS, 4)
    writing.train(2, {"loss": 0.75, "lr": 0.1})
    writing.evaluation("validation", 10, {"loss": 0.5, "accuracy": 0.8})
    writing.close(10)
    train, validation = (json.loads(line) for line in run.metrics.read_text().splitlines())
    assert list(train)[:4] == ["time", "step", "epoch", "split"]
    assert (train["step"], train["epoch"], train["split"]) == (2, 0.2, "train")
    assert (train["loss"], train["lr"]) == (0.75, 0.1)
    assert train["samples_per_s"] > 0
    # 80 tokens of 4 samples; the rates are rounded to a tenth. The loss counted neither, but 8.
    assert train["tokens_per_s"] == pytest.approx(20 * train["samples_per_s"], abs=20 * 0.05 + 0.05)
    assert (validation["epoch"], validation["accuracy"]) == (1.0, 0.8)
    assert len(list(run.tensorboard.glob("events.*"))) == 1


def test_the_speed_leaves_out_the_start_and_evaluations(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    clock = Mock(wraps=time, perf_counter=lambda: now)
    monkeypatch.setattr("toolkit.training.output.metrics_writer.time", clock)
    writing = metrics_writer(run, None)
    now = 100.0
    writing.start(0)
    now = 102.0
    writing.count(1, TOTALS, 4)
    with writing.untimed():
        now = 300.0
    now = 302.0
    writing.count(2, TOTALS, 4)
    writing.train(2, {"loss": 0.75})
    line = json.loads(run.metrics.read_text())
    assert (line["samples_per_s"], line["tokens_per_s"]) == (2.0, 40.0)


def test_lines_after_the_resumed_step_are_dropped(run: RunDir) -> None:
    for step in (2, 4, 6, 8, 10):
        append_json_line(
            run.metrics, {"time": 1.0, "step": step, "epoch": step / 10, "split": "train", "loss": 0.1 + 0.2}
        )
    append_json_line(run.metrics, {"time": 1.0, "step": 6, "epoch": 0.6, "split": "validation", "loss": 0.5})
    writing = metrics_writer(run, 6)
    writing.train(8, {"loss": 0.7})
    writing.close(8)
    lines = metrics_lines(run)
    assert steps(run) == [2, 4, 6, 6, 8]
    assert [line["split"] for line in lines] == ["train"] * 3 + ["validation", "train"]
    assert lines[0]["loss"] == 0.1 + 0.2
    assert lines[-1]["loss"] == 0.7


def test_progress_has_step_epoch_and_metrics(run: RunDir) -> None:
    writing = metrics_writer(run)
    writing.count(1, TOTALS, 4)
    writing.evaluation("validation", 10, {"accuracy": 0.8})
    writing.close(10)
    progress = read_json(run.progress)
    assert (progress["step"], progress["total_steps"], progress["epoch"]) == (10, 30, 1.0)
    assert progress["metrics"] == {"train_loss": 0.75, "validation_accuracy": 0.8}


def test_a_resumed_run_shows_its_last_evaluation_until_the_next_one(run: RunDir) -> None:
    before = metrics_writer(run)
    before.evaluation("validation", 10, {"loss": 0.7, "accuracy": math.nan})
    before.evaluation("validation", 20, {"loss": 0.5, "accuracy": 0.8})
    after = metrics_writer(run, 15)
    after.progress(15)
    assert read_json(run.progress)["metrics"] == {"validation_loss": 0.7}


def test_progress_does_not_wait_for_the_disk(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.files.os.fsync", Mock(side_effect=AssertionError("it waits")))
    metrics_writer(run, None).progress(3)
    assert read_json(run.progress)["step"] == 3


def test_a_failing_attempt_shows_its_last_step_but_none_before_its_first(run: RunDir) -> None:
    before = metrics_writer(run)
    before.count(1, TOTALS, 4)
    before.count(2, TOTALS, 4)
    assert read_json(run.progress)["step"] == 1, "it is not written for each step"
    before.failed(2)
    assert read_json(run.progress)["step"] == 2
    metrics_writer(run).failed(0)
    assert read_json(run.progress)["step"] == 2


def test_unwritable_progress_does_not_raise(run: RunDir) -> None:
    run.progress.mkdir()
    metrics_writer(run, None).progress(3)
    assert run.progress.is_dir()


def test_other_ranks_write_nothing(run: RunDir) -> None:
    writing = metrics_writer(run, is_main=False)
    writing.count(1, TOTALS, 4)
    writing.train(1, {"loss": 0.5})
    writing.evaluation("validation", 1, {"loss": 0.5})
    writing.close(1)
    assert list(run.path.iterdir()) == []


def test_display_receives_start_evaluation_and_stop(run: RunDir) -> None:
    display = Mock(spec=Display)
    writing = metrics_writer(run, 6, display=display)
    writing.evaluation("validation", 10, {"loss": 0.5})
    writing.close(10)
    ended = call.evaluation("validation", 1.0, {"loss": 0.5})
    assert display.mock_calls == [call.start(30, 6), ended, call.stop()]


def test_lines_wait_for_disk_space_and_keep_their_order(run: RunDir) -> None:
    """A folder in place of the file simulates a full disk."""
    writing = metrics_writer(run)
    run.metrics.mkdir()
    writing.train(2, {"loss": 0.5})
    writing.evaluation("validation", 4, {"loss": 0.5})
    with pytest.raises(OSError, match="directory"):
        writing.flush()
    run.metrics.rmdir()
    writing.train(6, {"loss": 0.5})
    writing.close(6)
    assert steps(run) == [2, 4, 6]


def test_lines_that_could_not_be_written_are_logged_as_lost(
    run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    writing = metrics_writer(run)
    run.metrics.mkdir()
    writing.train(2, {"loss": 0.5})
    writing.close(2)
    assert f"1 lines of {run.metrics} are lost" in caplog.messages


def test_later_lines_are_dropped_once_there_is_disk_space(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (2, 4, 6):
        append_json_line(run.metrics, {"step": step, "split": "train", "loss": 0.5})

    with monkeypatch.context() as full:
        full.setattr("toolkit.training.output.metrics_writer.write_atomic", NO_ROOM)
        writing = metrics_writer(run, 2)
        writing.train(4, {"loss": 0.25})
        assert steps(run) == [2, 4, 6]
    writing.train(6, {"loss": 0.25})
    writing.close(6)
    assert [(line["step"], line["loss"]) for line in metrics_lines(run)] == [(2, 0.5), (4, 0.25), (6, 0.25)]


def test_unwritable_tensorboard_folder_does_not_stop_metrics(run: RunDir) -> None:
    run.tensorboard.write_text("in its place")
    writing = metrics_writer(run)
    writing.train(2, {"loss": 0.5})
    writing.close(2)
    assert steps(run) == [2]


def test_tensorboard_error_does_not_stop_metrics(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = metrics_writer(run)
    monkeypatch.setattr("torch.utils.tensorboard.SummaryWriter.add_scalar", NO_ROOM)
    writing.train(2, {"loss": 0.5})
    writing.train(4, {"loss": 0.5})
    writing.close(4)
    assert steps(run) == [2, 4]


def test_metrics_are_written_without_tensorboard(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    writing = metrics_writer(run)
    writing.train(2, {"loss": 0.5})
    writing.close(2)
    assert steps(run) == [2]
    assert not run.tensorboard.exists()
