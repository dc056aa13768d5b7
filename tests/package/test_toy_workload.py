"""A workload of somebody else: a package outside of this one, installed beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "toy_workload"
EXPERIMENT = """\
name: line
task: {kind: toy_points}
model: {kind: line, hidden: 4, dropout: 0.1}
data: {path: points.txt}
train: {epochs: 4, batch_size: 16}
optimizer: {lr: 0.02}
evaluation: {metric: distance}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(SOURCE, folder / "source")
    words = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation")
    target = folder / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *words, "--target", target, folder / "source"], check=True
    )
    return target


class Shell:
    """An empty folder of a user who has installed the package."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder, self.site = folder, site
        points = ((number % 40 / 20 - 1, 3 * (number % 40 / 20 - 1) + 1) for number in range(120))
        (folder / "points.txt").write_text("".join(f"{x} {y}\n" for x, y in points))
        (folder / "toy.yaml").write_text(EXPERIMENT)

    def stk(
        self, *words: str, code: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONPATH": str(self.site), "PYTHONSAFEPATH": "1", **(env or {})}
        environ.pop("STK_EXPERIMENT_DIR", None)
        command = [sys.executable, "-m", "slurm", *words]
        done = subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    @property
    def run(self) -> Path:
        (found,) = (self.folder / "experiments").glob("line-*")
        return found

    @property
    def weights(self) -> bytes:
        return (self.run / "checkpoints/best/model.safetensors").read_bytes()


@pytest.fixture
def shell(tmp_path: Path, site: Path) -> Shell:
    return Shell(tmp_path, site)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("finished"), site)
    shell.stk("run", "toy.yaml")
    return shell


def test_keys_and_rules_of_an_external_workload_are_checked(shell: Shell) -> None:
    error = shell.stk("plan", "toy.yaml", "model.hiden=3", code=2).stderr
    assert "model.hiden" in error
    assert "hidden" in error
    assert "model.dropout" in shell.stk("plan", "toy.yaml", "model.hidden=0", code=2).stderr
    assert "points.tsv" in shell.stk("submit", "toy.yaml", "data.path=points.tsv", code=2).stderr


def test_external_workload_trains_and_its_metrics_are_shown(finished: Shell) -> None:
    result = json.loads((finished.run / "result.json").read_text())
    assert result["best"]["metric"] == "distance:min"
    assert result["metrics"]["test"].keys() == {"loss", "distance"}
    report = finished.stk("report", "line").stdout
    assert "Mean distance" in report
    assert "Range" in report
    assert "results_not_recorded" not in (finished.run / "events.jsonl").read_text()


@pytest.mark.slow
def test_comparison_has_the_section_of_an_external_workload(finished: Shell) -> None:
    assert "Compared" in finished.stk("report", "line", str(finished.run)).stdout


@pytest.mark.slow
def test_a_stopped_run_continues_with_its_own_code(site: Path, finished: Shell, tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "site")
    shutil.copytree(site, shell.site)
    shell.stk("run", "toy.yaml", code=130, env={"STK_FAULTS": "term at=forward step=5"})
    for package in (shell.site / "stk_toy", *shell.site.glob("stk_toy-*.dist-info")):
        shutil.rmtree(package)
    shell.stk("resume", "line", code=2)
    kept = {"PYTHONPATH": str(shell.run / "code")}
    shell.stk("resume", "line", env=kept)
    assert shell.weights == finished.weights


def break_module(shell: Shell, name: str) -> None:
    """Let a module of the package import what is missing, in a copy of its own."""
    broken = shutil.copytree(shell.site, shell.folder / "site")
    (broken / "stk_toy" / name).write_text("import nowhere_to_be_found  # 100 %\n")
    shell.site = broken


@pytest.mark.slow
def test_workload_that_cannot_be_imported_does_not_break_others(shell: Shell) -> None:
    break_module(shell, "sections.py")
    error = shell.stk("plan", "toy.yaml", code=2).stderr
    assert "stk_toy.workload" in error
    assert "nowhere_to_be_found" in error
    other = Path(__file__).parents[2] / "configs" / "quickstart.yaml"
    error = shell.stk("plan", str(other), f"data.path={shell.folder / 'none.csv'}", code=2).stderr
    assert "none.csv" in error
    assert "nowhere_to_be_found" not in error
    assert "nowhere_to_be_found" not in shell.stk("status").stderr


@pytest.mark.slow
def test_command_that_cannot_be_imported_does_not_break_others(shell: Shell) -> None:
    break_module(shell, "commands.py")
    assert "nowhere_to_be_found" in shell.stk("line", "a-run", code=2).stderr
    assert "nowhere_to_be_found" in shell.stk("--help").stdout
    assert "nowhere_to_be_found" in shell.stk("evaluate", "--help").stdout
    assert "nowhere_to_be_found" not in shell.stk("evaluate", "a-run", code=2).stderr


@pytest.mark.slow
def test_evaluate_option_of_a_workload_scores_a_file_without_a_run(finished: Shell) -> None:
    assert finished.stk("evaluate", "--points", "points.txt").stdout == "120 points\n"
    refused = finished.stk("evaluate", "line-", "--points", "points.txt", code=2).stderr
    assert "--points does not go with RUN" in refused
