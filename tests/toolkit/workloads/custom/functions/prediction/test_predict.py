"""`stk predict` with three functions: the user's code reads the rows and predicts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.toolkit.workloads.custom.own_digits import DIGITS, Project, write_digits

#: As in training a batch is a pair: the label, which a row lacks, is any number.
PREDICT = """

def sample(row):
    return torch.tensor(row).float() / 16, -1


def predict(model, batch):
    x, y = batch
    return model(x).softmax(1)
"""


def project_in(folder: Path, code: str) -> Project:
    write_digits(folder)
    (folder / "digits.py").write_text(code)
    return Project(folder)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run that was trained once and moved; the user's files are deleted."""
    project = project_in(tmp_path_factory.mktemp("project") / "there", DIGITS + PREDICT)
    project.stk("run", "digits.yaml")
    moved = project.folder.parent / "here"
    (moved / "experiments").mkdir(parents=True)
    shutil.move(project.run.path, moved / "experiments")
    shutil.rmtree(project.folder)
    project.folder = moved
    return project


@pytest.fixture(scope="module")
def pixels() -> list[list[float]]:
    """The test set, as the functions choose it."""
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)[0][9::10][:120].tolist()


@pytest.fixture(scope="module")
def told(project: Project) -> list[list[float]]:
    """The run's own predictions for its test set."""
    lines = (project.run.artifacts / "test_predictions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def close(found: list[list[float]], told: list[list[float]]) -> bool:
    return torch.allclose(torch.tensor(found), torch.tensor(told), atol=1e-6)


def test_predictions_from_standard_input_are_those_of_the_test_set(
    project: Project, pixels: list[list[float]], told: list[list[float]]
) -> None:
    """The folder has neither the user's files nor the data."""
    rows = "".join(f"{row}\n" for row in pixels)
    lines = project.stk("predict", project.run.run_id, "--batch-size", "7", given=rows).splitlines()
    assert close([json.loads(line) for line in lines], told)


def test_exported_folder_predicts_like_the_run(
    project: Project, pixels: list[list[float]], told: list[list[float]], tmp_path: Path
) -> None:
    project.stk("export", project.run.run_id, tmp_path / "slim")
    rows = "".join(f"{row}\n" for row in pixels)
    lines = project.stk("predict", tmp_path / "slim", given=rows).splitlines()
    assert close([json.loads(line) for line in lines], told)


def test_model_loads_in_a_separate_process_of_the_user(project: Project, pixels: list[list[float]]) -> None:
    """Run in a process of its own: here another project may have a module of the same name."""
    code = (
        "import os, torch\nfrom toolkit.analysis.prediction.load import load_model\n"
        f"model = load_model({str(project.run.path)!r})\n"
        "print(model.training, model(torch.zeros(2, 64)).shape, type(model).__module__, os.getcwd())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.folder, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"False torch.Size([2, 10]) my_project.models {project.folder}\n", done.stderr


def test_missing_predict_function_is_reported_with_an_example(tmp_path: Path) -> None:
    project = project_in(tmp_path / "project", DIGITS)
    run = tmp_path / "project" / "experiments" / "digits-1"
    (run / "code" / "project").mkdir(parents=True)
    shutil.copy(project.folder / "digits.py", run / "code" / "project")
    (run / "config.yaml").write_text("name: digits\ntask: {kind: three_functions, module: digits.py}\n")
    said = project.stk("predict", "digits", code=2)
    assert (
        "digits.py has no function predict: add it to your file, such as 'def predict(model, batch)" in said
    )
