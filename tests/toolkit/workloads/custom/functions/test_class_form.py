"""A task that is written as a class."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from toolkit.config import load
from toolkit.errors import ConfigError, UserError
from toolkit.testing.contract import CHECKS, new_model, open_task
from toolkit.workloads.custom.functions import user_code
from toolkit.workloads.custom.functions.reading.problems import Unfit
from toolkit.workloads.custom.functions.reading.signatures import Functions, functions_in
from toolkit.workloads.custom.functions.task import FunctionsTask

_FILE = """\
import stk
import torch
from torch import nn
from torch.utils.data import TensorDataset

WIDTH = 8


class Points(stk.Task):
    DEPTH = 2
    metrics = {"accuracy": "max"}

    def __init__(self, count=60):
        self.inputs = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))

    def model(self, width: int = WIDTH, depth: int = DEPTH):
        return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def data(self, split: str):
        return TensorDataset(self.inputs, (self.inputs[:, 0] > 0).long())

    @staticmethod
    def step(model, batch):
        inputs, labels = batch
        scores = model(inputs)
        loss = nn.functional.cross_entropy(scores, labels, reduction="none")
        return {"loss": loss, "accuracy": scores.argmax(1) == labels}
"""
_YAML = "name: points\ntask: points.py:Points\nevaluation: {metric: accuracy}\ntrain: {epochs: 1}\n"


@pytest.fixture
def config(empty_folder: Path) -> Path:
    (empty_folder / "points.py").write_text(_FILE)
    (empty_folder / "points.yaml").write_text(_YAML)
    return empty_folder / "points.yaml"


def _read(text: str, name: str = "Points") -> Functions:
    return functions_in(text.encode(), Path("points.py"), name)


def test_parameters_of_methods_are_keys_of_the_experiment(config: Path) -> None:
    experiment = load(config, ["model.width=16"])
    assert experiment.model.values() == {"kind": "model_function", "width": 16, "depth": 2}
    assert experiment.evaluation.metric == "accuracy:max"
    with pytest.raises(ConfigError, match=r"model\.wide"):
        load(config, ["model.wide=16"])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_class_keeps_the_task_contract(config: Path, check) -> None:
    experiment = load(config)
    task = open_task(experiment)
    check(experiment, task, new_model(task))


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("class Points(", "class Others(", "has no class Points"),
        ("count=60", "count", "Points.__init__ takes count"),
        ("def data(self, split: str)", "def data(self)", "found data()"),
        ("def step(model, batch)", "def step(model)", "found step(model)"),
        ("    def model(", "    def models(", "class Points has no method model of its own"),
        ("def model(self, ", "def model(", "Points.model has no parameter"),
        ("def data(self, split: str)", "def data()", "Points.data has no parameter"),
        ("def data(self, split: str)", "def data(split: str)", "takes split instead of the object"),
        ("    @staticmethod\n    def step(", "    def step(", "takes model instead of the object"),
        ("def model(self, ", "def model(hidden: int, ", "takes hidden instead of the object"),
    ],
)
def test_errors_of_a_class_are_found_without_executing_it(old: str, new: str, said: str) -> None:
    with pytest.raises(Unfit) as raised:
        _read(_FILE.replace(old, new))
    assert any(said in each.problem for each in raised.value.problems)


def test_methods_of_a_base_class_are_asked_for_in_the_class_itself() -> None:
    with pytest.raises(Unfit) as raised:
        _read(f"{_FILE}\n\nclass Lines(Points):\n    def data(self):\n        pass\n", "Lines")
    problems = {each.problem: each.hint for each in raised.value.problems}
    (model,) = (each for each in problems if "has no method model" in each)
    (data,) = (each for each in problems if each.startswith("found data()"))
    assert "Lines" in model
    assert problems[model].startswith("def model(self, hidden")
    assert problems[data].startswith("def data(self, split)")


def test_example_for_a_static_method_has_no_object() -> None:
    with pytest.raises(Unfit) as raised:
        _read(_FILE.replace("def step(model, batch)", "def step(model)"))
    assert raised.value.problems[0].hint.startswith("def step(model, batch)")


@pytest.mark.parametrize("method, times", [("", 1), ("    def prepare(self): pass\n", 2)])
def test_a_process_makes_one_object_and_another_one_for_prepare(
    config: Path, method: str, times: int
) -> None:
    """The constructor may read all data. What `prepare` leaves in its object, other ranks would not have."""
    noted = "        open('made', 'a').write('x')\n        self.inputs ="
    (config.parent / "points.py").write_text(_FILE.replace("        self.inputs =", noted) + method)
    open_task(load(config))
    assert (config.parent / "made").read_text() == "x" * times


@pytest.mark.parametrize(
    "failing, error", [("1 // 0", "ZeroDivisionError"), ("__import__('sys').exit()", "SystemExit")]
)
def test_failing_constructor_is_reported_with_its_line(config: Path, failing: str, error: str) -> None:
    experiment = load(config)
    text = _FILE.replace("torch.randn(count", f"torch.randn({failing}, count")
    (config.parent / "points.py").write_text(text)
    with pytest.raises(UserError, match=rf"points\.py:14: Points\(\) fails \({error}"):
        open_task(experiment)


def test_module_and_constructor_draw_the_same_random_numbers_in_each_process(config: Path) -> None:
    """Otherwise a later attempt would have other data, and could not continue."""
    text = _FILE.replace("WIDTH = 8", "WIDTH, SHIFT = 8, torch.rand(1)")
    text = text.replace(", generator=torch.Generator().manual_seed(1))", ") + SHIFT")
    (config.parent / "points.py").write_text(text)
    experiment, found = load(config), set()
    for opened in (open_task, FunctionsTask, open_task):
        # As in a new process; only one process of an attempt prepares.
        user_code._imported.cache_clear()
        torch.rand(1)
        found.add(opened(experiment).fingerprint)
    assert len(found) == 1
