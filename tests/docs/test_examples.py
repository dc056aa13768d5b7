"""The projects in examples/ work, and the pages show them as they are."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.docs.readme import ROOT, blocks
from tests.toolkit.gpu.device import CUDA
from tests.toolkit.gpu.test_tasks import deterministic_device, learnt_from
from tests.toolkit.support.ranks import in_ranks
from toolkit.config import load
from toolkit.system.world import World
from toolkit.task import task_class

EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "your-code" / "own-code.md").read_text(encoding="utf-8")
NAMED = "# yaml-language-server: $schema="
README = (ROOT / "README.md").read_text(encoding="utf-8")


def stk(folder: Path, *words: str) -> str:
    """Start `stk` in a folder as a user does who has installed the toolkit."""
    environ = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT / "tests" / "undrawn")}
    environ.pop("STK_EXPERIMENT_DIR", None)
    command = [sys.executable, "-m", "slurm", *words]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


#: What each of them reaches on the test set: a metric, and what it is better than. test_tutorial.py trains
#: the digits.
LEARNT = {
    "graph": ("accuracy", 0.8),
    "images": ("accuracy", 0.9),
    # A blank for each character is right once in six times.
    "language": ("accuracy", 0.22),
    # Of patients whose values spread by 77, and by 66 around their median on average.
    "table": ("absolute_error", 50.0),
}
NAMES = ["digits", *LEARNT]


def test_every_example_is_tested() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir()) == sorted(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNT)
def test_an_example_learns(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / name, tmp_path / name)
    stk(folder, "run", f"{name}.yaml")
    (run,) = (folder / "experiments").iterdir()
    metric, bound = LEARNT[name]
    found = json.loads((run / "result.json").read_text())["metrics"]["test"][metric]
    (log,) = run.glob("logs/*.rank_00000.log")
    assert "Warning" not in log.read_text()
    assert found < bound if metric == "absolute_error" else found > bound


def loss_on_a_gpu(world: World, name: str) -> float:
    experiment = load(EXAMPLES / name / f"{name}.yaml", ["train.device=auto"])
    task = task_class(experiment)(experiment)
    with deterministic_device():
        loss, _ = learnt_from(task, task.model().to(CUDA), CUDA)
    return loss


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_deterministic_gradients_on_a_gpu(name: str) -> None:
    (loss,) = in_ranks(1, loss_on_a_gpu, name)
    assert math.isfinite(loss)


@pytest.mark.parametrize("name", NAMES)
def test_experiment_of_an_example_can_be_planned(name: str) -> None:
    plan = json.loads(stk(EXAMPLES / name, "plan", f"{name}.yaml", "--json"))
    assert plan["config"]["name"] == name


@pytest.mark.parametrize("page", [README, PAGE], ids=["README", "own-code"])
@pytest.mark.parametrize("name", ["digits.py", "digits.yaml"])
def test_the_page_shows_the_example(name: str, page: str) -> None:
    text = (EXAMPLES / "digits" / name).read_text(encoding="utf-8")
    # The line for editors is left out.
    assert re.sub(rf"\A{re.escape(NAMED)}.*\n", "", text) in blocks(r"\w+", page)


@pytest.mark.parametrize("name", NAMES)
def test_an_editor_finds_the_schema_of_an_example_and_accepts_it(name: str) -> None:
    text = (EXAMPLES / name / f"{name}.yaml").read_text(encoding="utf-8")
    schema = EXAMPLES / name / text.splitlines()[0].removeprefix(NAMED)
    valid = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).is_valid
    assert valid(yaml.safe_load(text))
    assert not valid({**yaml.safe_load(text), "trian": {}})


def test_metric_goals_shown_on_the_page_are_read(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLES / "digits", tmp_path / "digits")
    (goals,) = re.findall(r"^```python\n(metrics = .*\n)```", PAGE, re.MULTILINE)
    with (folder / "digits.py").open("a") as file:
        file.write(goals)
    plan = json.loads(stk(folder, "plan", "digits.yaml", "evaluation.metric=accuracy", "--json"))
    assert plan["config"]["evaluation"]["metric"] == "accuracy:max"
