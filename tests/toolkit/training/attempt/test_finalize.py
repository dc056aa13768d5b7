"""The end of a run: what is written before result.json, and what may fail."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.toolkit.support.tiny import events, tiny
from toolkit.config import load_to_run
from toolkit.errors import CheckpointError
from toolkit.files import read_json, read_json_lines
from toolkit.reliability.restart_policy import after_failure
from toolkit.reliability.stop import StopFlag
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import WEIGHTS, RunDir
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.attempt import finalize
from toolkit.training.evaluation import score_split

pytestmark = pytest.mark.usefixtures("threads_restored")


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    experiment = tiny(tmp_path / "data", "train.epochs=1", "train.eval_per_epoch=1")
    return create_run(experiment, tmp_path / "experiments")


def test_progress_shows_all_steps_before_the_best_weights_are_scored(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A very short run ends before progress.json is due a second time."""
    told: list[tuple[int, int]] = []

    def look(*arguments: Any, **options: Any) -> Any:
        progress = read_json(run.progress)
        told.append((progress["step"], progress["total_steps"]))
        return score_split(*arguments, **options)

    monkeypatch.setattr(finalize, "score_split", look)
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    step = read_json(run.result)["step"]
    assert told == [(step, step)] * 2


def test_a_failure_in_the_final_scoring_has_phase_evaluation(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finalize, "score_split", Mock(side_effect=RuntimeError("no metric")))
    with pytest.raises(RuntimeError):
        worker.run_attempt(run, World.single(), StopFlag())
    assert read_json(run.failure)["phase"] == "evaluation"


def test_run_whose_best_checkpoint_is_damaged_at_its_end_starts_again_and_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An evaluation after half of the steps gives it an earlier checkpoint to go on from."""
    run = create_run(tiny(tmp_path / "data", "train.epochs=1"), tmp_path / "experiments")
    load = finalize._load_weights

    def damage(folder: Path, context: Any) -> None:
        (folder / WEIGHTS).write_bytes(b"")
        load(folder, context)

    with monkeypatch.context() as damaged:
        damaged.setattr(finalize, "_load_weights", damage)
        with pytest.raises(CheckpointError, match="has 0 bytes"):
            worker.run_attempt(run, World.single(), StopFlag())
    assert read_json(run.failure)["class"] == "io"
    assert after_failure(run, load_to_run(run.config)).action == "retry"
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    assert events(run, "checkpoint_rejected")


def test_metrics_that_found_room_only_at_the_end_are_in_the_result(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = finalize._load_weights
    with monkeypatch.context() as disk:

        def load_with_room(*arguments: Any) -> None:
            disk.undo()
            load(*arguments)

        full = Mock(side_effect=OSError(errno.ENOSPC, "no space left on device"))
        disk.setattr("toolkit.training.output.metrics_writer.append_json_line", full)
        disk.setattr(finalize, "_load_weights", load_with_room)
        assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    assert read_json(run.result)["metrics"]["train"]["loss"] > 0


def test_run_with_a_nan_score_finishes(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a precision of a class that nothing was assigned to."""

    def one_is_none(*arguments: Any) -> Any:
        result, metrics = score_split(*arguments)
        return result, {**metrics, "precision": math.nan, "perplexity": math.inf}

    monkeypatch.setattr(finalize, "score_split", one_is_none)
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    scores = read_json(run.result)["metrics"]["test"]
    assert (scores["precision"], scores["perplexity"]) == (None, None)
    assert scores["loss"] > 0


def test_report_that_fails_does_not_fail_the_run(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Mock(side_effect=ValueError("no fonts"))
    monkeypatch.setattr("toolkit.report.rendering.writing.write_report", failing)
    assert worker.run_attempt(run, World.single(), StopFlag()) is Outcome.FINISHED
    assert run.result.is_file()
    assert any("no fonts" in json.dumps(line) for line in read_json_lines(run.events))
    assert "no fonts" in caplog.text
