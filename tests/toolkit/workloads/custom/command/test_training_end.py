"""When the training of a command ended, by the lines that its script has logged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.command.recorded import training_end

#: Of attempt 1, which began at step 0.
PROGRESS = {"attempt": 1, "first_step": 0, "first_step_time": 100.0, "resumed": False, "time": 130.0}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """Steps until 110, a validation until 120, a test until 130."""
    run = RunDir(tmp_path / "run")
    (run.path / "ranks").mkdir(parents=True)
    write_json(run.progress, {**PROGRESS, "step": 12, "total_steps": 12})
    for time, split in ((110.0, "train"), (120.0, "validation"), (130.0, "test")):
        append_json_line(run.metrics, {"time": time, "step": 12, "split": split, "loss": 1.0})
    return run


@pytest.mark.parametrize(
    "known, has_finished, expected",
    [
        pytest.param({}, False, 120.0, id="all steps are done"),
        pytest.param({"step": 8}, False, None, id="steps are left"),
        pytest.param({"step": 8}, True, 120.0, id="stopped early"),
        pytest.param({"total_steps": None}, True, 120.0, id="finished"),
        pytest.param({"total_steps": None}, False, None, id="perhaps steps are left"),
        pytest.param({"first_step": 12}, True, 100.0, id="no step was left"),
    ],
)
def test_training_ends_with_the_last_line_of_training_or_validation(
    run: RunDir, known: dict[str, Any], has_finished: bool, expected: float | None
) -> None:
    write_json(run.progress, {**PROGRESS, "step": 12, "total_steps": 12, **known})
    assert training_end(run, "a", 1, has_finished=has_finished) == expected


def test_attempt_without_a_line_finishes_from_when_run_callback_began(run: RunDir) -> None:
    assert training_end(run, "b", 2, has_finished=True) is None
    begun = run.training("b.2.0")
    begun.write_text("[]")
    os.utime(begun, (150.0, 150.0))
    assert training_end(run, "b", 2, has_finished=False) == 150.0


def test_command_without_lines_has_no_known_end(tmp_path: Path) -> None:
    assert training_end(RunDir(tmp_path / "run"), "a", 1, has_finished=True) is None
