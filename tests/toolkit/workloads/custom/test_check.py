"""`stk check` on users' files: its findings and messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from slurm.drill.task import drill_experiment
from tests.support.patience import PATIENCE_S
from tests.tiers import first_quick
from tests.toolkit.workloads.custom.own_digits import POINTS
from toolkit.config import load
from toolkit.errors import UserError
from toolkit.run.create_run import create_run
from toolkit.testing import trial_runs, try_experiment

_YAML = "name: mine\ntask: mine.py\noptimizer: {lr: 0.01}\ntrain: {epochs: 2, batch_size: 8}\n"

Found = Callable[..., dict[str, try_experiment.Finding]]


def _written(folder: Path, change: str) -> Path:
    """The experiment of functions whose step changes something."""
    code = POINTS.replace("    x, y = batch\n", f"    x, y = batch\n    {change}\n")
    (folder / "mine.py").write_text(f"import os, threading\n{code}")
    (folder / "mine.yaml").write_text(_YAML)
    return folder / "mine.yaml"


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """What the checks of single steps find in a changed file, by their names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(try_experiment, "_of_runs", lambda *_: iter(()))

    def findings(change: str, *words: str) -> dict[str, try_experiment.Finding]:
        run = create_run(load(_written(tmp_path, change), words), tmp_path / "runs")
        found = [each for each in try_experiment.findings(run) if isinstance(each, try_experiment.Finding)]
        return {each.check: each for each in found}

    return findings


def _check(config: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "slurm", "check", config.name, *words]
    environ = {**os.environ, "STK_EXPERIMENT_DIR": str(config.parent / "experiments")}
    done = subprocess.run(
        command, cwd=config.parent, env=environ, stdout=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.slow
def test_valid_task_passes_and_its_cost_is_reported(tmp_path: Path) -> None:
    code, printed = _check(_written(tmp_path, ""), "--json")
    answer: dict[str, Any] = json.loads(printed)
    assert code == 0
    assert answer["failed"] == []
    assert {"1 process = 2", "stopped = not stopped"} <= {each["check"] for each in answer["checks"]}
    assert answer["cost"]["steps"] == 10
    assert answer["cost"]["memory_mb"] > 0
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"mine.py", "mine.yaml"}


def test_trial_has_two_logical_ranks_and_neither_restarts_nor_notifications(tmp_path: Path) -> None:
    words = ["train.logical_ranks=1", "train.accumulation=3", "resources.webhook_env=STK_WEBHOOK_URL"]
    trial = trial_runs.on_trial(load(_written(tmp_path, ""), words))
    assert (trial.train.logical_ranks, trial.train.accumulation) == (2, 2)
    assert (trial.resources.max_crashes, trial.resources.webhook_env) == (0, None)


@pytest.mark.slow
def test_dependence_of_training_on_the_process_is_found(tmp_path: Path) -> None:
    code, printed = _check(_written(tmp_path, "x = x * (1 + os.getpid() % 89)"))
    assert code == 1
    assert "failed: 1 process = 2, stopped = not stopped" in printed


@pytest.mark.parametrize(
    "change, good",
    [
        ("x = x * 0", {"loss is finite": True, "overfits a batch": False}),
        # Half of a loss below 0 is above it.
        ('return {"loss": model(x).mean(1) - 5.0}', {"overfits a batch": None}),
        ('return {"loss": model(x).mean(1) * 0}', {"overfits a batch": False}),
        (
            "x = x + torch.randn(4)",
            {"loss adds up": None, "scores add up": None, "same seed, same model": True},
        ),
        ('x = x * float("inf")', {"loss is finite": False}),
    ],
    ids=["no inputs", "a loss below 0", "a loss of 0", "a random step", "a loss that is not finite"],
)
def test_changed_step_passes_fails_or_is_not_judged(
    change: str, good: dict[str, bool | None], found: Found
) -> None:
    checks = found(change)
    assert {name: checks[name].is_good for name in good} == good


def test_error_in_step_is_reported_with_its_line_and_ends_the_check(tmp_path: Path) -> None:
    change = "x = x @ torch.ones(3, 3)"
    code, printed = _check(_written(tmp_path, change))
    line = 1 + (tmp_path / "mine.py").read_text().splitlines().index(f"    {change}")
    checks = [each.split("  ")[0] for each in printed.splitlines()]
    assert code == 1
    assert f"{tmp_path / 'mine.py'}:{line}" in printed
    assert checks == ["ok", "ok", "FAILED", "", "failed: loss is finite"]


@pytest.mark.parametrize("left", first_quick(["os._exit(0)", "raise SystemExit(0)"]))
def test_step_that_ends_the_process_with_status_0_does_not_pass(tmp_path: Path, left: str) -> None:
    code, printed = _check(_written(tmp_path, left))
    assert code == 4
    assert [each.split()[:2] for each in printed.splitlines()] == [["ok", "data"], ["ok", "model"]]


def test_parameters_without_a_gradient_are_named_and_pass(found: Found) -> None:
    """For example the parameters of an unused pretrained layer."""
    check = found("model[1].unused = nn.Linear(2, 2)")["loss is finite"]
    assert check.is_good
    assert "no gradient for 1.unused.weight, 1.unused.bias" in check.found


def test_compilation_for_a_gpu_is_skipped_without_a_gpu(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(try_experiment, "choose_device", lambda wanted: torch.device("cpu"))
    checks = found("", "train.compile=on", "train.deterministic=false")
    assert checks["compiles"].is_good is None
    assert checks["time and memory"].is_good


def test_a_model_that_cannot_be_compiled_fails(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", refuse)
    words = ("train.compile=on", "train.deterministic=false", "train.reduction=fast", "train.device=cpu")
    check = found("", *words)["time and memory"]
    assert "no compiler" in check.found
    assert check.is_good is False


@pytest.mark.parametrize("number", first_quick([signal.SIGTERM, signal.SIGINT]))
def test_a_check_that_is_stopped_leaves_no_folder_and_no_process(tmp_path: Path, number: int) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    config = _written(tmp_path, f"open({str(begun)!r}, 'w').close(); threading.Event().wait()")
    (tmp_path / "scratch").mkdir()
    environ = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    command = [sys.executable, "-m", "slurm", "check", config.name]
    process = psutil.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL)
    # Opens when the other side does.
    begun.read_text()
    inner = process.children(recursive=True)
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 130
    assert inner
    assert psutil.wait_procs(inner, timeout=PATIENCE_S)[1] == []
    assert list((tmp_path / "scratch").iterdir()) == []


def test_check_and_drill_refuse_a_command_and_blame_no_key(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("name: own\ntask: {kind: command, run: [python, -V]}\n")
    assert _check(tmp_path / "own.yaml") == (2, "")
    with pytest.raises(UserError, match="of kind command") as refusal:
        drill_experiment(tmp_path / "own.yaml", [], tmp_path, 8)
    assert "train." not in str(refusal.value)
