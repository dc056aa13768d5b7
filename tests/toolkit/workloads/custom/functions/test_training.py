"""Three functions of a user train with all features of the core."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from slurm.runs.reproduce_script import gather, script
from tests.toolkit.workloads.custom.own_digits import DIGITS, MODELS, Project, write_digits
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir
from toolkit.testing.contract import CHECKS, batch_of, evaluated, new_model, open_task, same_results


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("finished") / "project")
    write_digits(project.folder)
    (project.folder / "terminal.txt").write_text(project.stk("run", "digits.yaml") + project.errors)
    return project


def test_no_library_warns_on_the_terminal(finished: Project) -> None:
    said = (finished.folder / "terminal.txt").read_text()
    assert "accuracy" in said
    assert "Warning" not in said


def test_run_stopped_in_two_processes_ends_with_the_same_bytes(finished: Project) -> None:
    """The user changes the files before the run is resumed."""
    project = Project(finished.folder, "stopped")
    project.stk("run", "digits.yaml", "--procs", "2", code=130, faults="term at=forward step=9")
    changed = DIGITS.replace("reduction=", "label_smoothing=0.1, reduction=")
    (project.folder / "digits.py").write_text(changed)
    (project.folder / "my_project" / "models.py").unlink()
    project.stk("run", "digits.yaml")
    same_results(project.run, finished.run)


@pytest.mark.parametrize("left", ["sys.exit(0)", "os._exit(0)"])
def test_function_that_ends_the_process_fails_the_run_whatever_the_status(tmp_path: Path, left: str) -> None:
    project = Project(tmp_path / "project")
    config = write_digits(project.folder)
    file = project.folder / "digits.py"
    file.write_text(file.read_text().replace("    scores = model(x)\n", f"    import os, sys; {left}\n"))
    said = project.stk("run", config.name, code=4)
    (attempt,) = read_attempts(project.run)
    assert (attempt.why, attempt.blamed) == ("exception", None), said


def test_metrics_of_step_are_in_the_result_and_the_report(finished: Project) -> None:
    result = json.loads(finished.run.result.read_text())
    assert result["best"]["metric"] == "accuracy:max"
    assert result["metrics"]["test"].keys() == {"loss", "accuracy"}
    assert result["metrics"]["test"]["accuracy"] > 0.1
    assert "accuracy" in finished.stk("report", "digits")
    (row,) = json.loads(finished.stk("status", "--json"))
    assert row["state"] == "finished"


def test_no_prepared_data_are_missed_when_the_run_is_repeated(finished: Project) -> None:
    assert gather(finished.run).verified


def test_script_that_repeats_the_run_makes_the_same_experiment(finished: Project, tmp_path: Path) -> None:
    """It plans with the run's own code, which has a copy of the file: the user's file may be gone."""
    file = finished.folder / "digits.py"
    file.rename(tmp_path / "moved.py")
    try:
        (tmp_path / "repeat.sh").write_text(script(gather(finished.run)))
        command = ["bash", "repeat.sh", "plan"]
        environ = {"PATH": os.defpath, "HOME": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    finally:
        (tmp_path / "moved.py").rename(file)
    assert done.returncode == 0, done.stderr
    assert finished.run.run_id in done.stdout


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_functions_keep_the_task_contract(config: Path, check) -> None:
    experiment = load(config)
    task = open_task(experiment)
    check(experiment, task, new_model(task))


def test_scoring_of_other_files_is_refused(config: Path) -> None:
    experiment = load(config)
    task = open_task(experiment)
    with pytest.raises(UserError, match="other files") as refusal:
        task.on(experiment.data)
    assert "stk predict" in str(refusal.value)


def test_metrics_that_cannot_be_read_from_the_text_are_found_by_a_step(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS.replace("    return {", "    return {} or {"))
    task = open_task(load(config))
    assert task.train_sums == ("accuracy", "accuracy count")


def test_constant_and_recomputed_buffers_are_accepted(config: Path) -> None:
    """For example a mask, which may hold NaN, or values that a layer caches for the next batch."""
    models = config.parent / "my_project" / "models.py"
    mask = "self.register_buffer('mask', torch.full((2,), math.nan))"
    kept = "self.register_buffer('kept', None, persistent=False)"
    passes = "def forward(self, x):\n        self.kept = x[:1].clone()\n        return super().forward(x)"
    models.write_text(f"import math, torch\n{MODELS}        {mask}\n        {kept}\n\n    {passes}\n")
    task = open_task(load(config))
    model = new_model(task)
    assert task.loss(model, batch_of(task, 2)).count == 2


def test_loss_is_nan_if_all_samples_have_weight_0(config: Path) -> None:
    weightless = DIGITS.replace('{"loss":', '{"weights": 0.0 * y, "loss":')
    (config.parent / "digits.py").write_text(weightless)
    task = open_task(load(config))
    evaluation = evaluated(task, new_model(task), "test")
    assert math.isnan(task.metrics("test", evaluation)["loss"])


def predicted(config: Path, run: RunDir, result: str) -> list[Any]:
    """What a run writes for the test set if `predict` returns this."""
    predict = f"\n\ndef predict(model, batch):\n    return {result}\n"
    (config.parent / "digits.py").write_text(DIGITS + predict)
    task = open_task(load(config))
    task.write_report(run, "test", evaluated(task, new_model(task), "test"))
    return [*map(json.loads, (run.artifacts / "test_predictions.jsonl").read_text().splitlines())]


def test_predictions_of_different_lengths_are_written_for_each_sample(config: Path, run: RunDir) -> None:
    found = predicted(config, run, "[row[: label + 1] for row, label in zip(*batch)]")
    assert len(found) == 120
    assert {*map(len, found)} == {*range(1, 11)}
