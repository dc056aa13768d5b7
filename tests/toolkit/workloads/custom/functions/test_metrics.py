"""Goals, titles and units of the metrics of a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.toolkit.workloads.custom.own_digits import DIGITS, faults
from toolkit.config import load
from toolkit.config.identity import identity
from toolkit.config.serialize import to_plain
from toolkit.registry import metric_of, metrics_of
from toolkit.workload import Metric


@pytest.mark.parametrize(
    "metric, said", [("accuracy", "accuracy:max"), ("max:accuracy", "did you mean accuracy:max?")]
)
def test_a_metric_without_a_goal_or_after_its_goal_is_one_fault(config: Path, metric: str, said: str) -> None:
    (fault,) = faults(config, f"evaluation.metric={metric}")
    assert said in fault


def test_a_misspelt_metric_is_named_with_the_faults_of_all_sections(config: Path) -> None:
    """Also those of a section that a function replaces, once each."""
    overrides = ["evaluation.metric=acuracy:max", "model.hiden=3", "lr_scheduler.kind=lineer"]
    metric, scheduler, model, optimizer = faults(config, *overrides, "optimizer.lrr=3")
    assert "evaluation.metric: " in metric
    assert "did you mean accuracy?" in metric
    assert "lr_scheduler.kind: " in scheduler
    assert "model.hiden: " in model
    assert "optimizer.lrr: " in optimizer
    (config.parent / "digits.py").write_text(DIGITS + "def optimizer(model, lr: float = 0.1):\n    pass\n")
    model, optimizer = faults(config, "model.hiden=3", "optimizer.lr=x")
    assert "model.hiden: " in model
    assert "optimizer.lr: " in optimizer


def test_python_file_may_declare_the_goal_of_a_metric(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS + 'metrics = {"accuracy": "max"}\n')
    experiment = load(config, ["evaluation.metric=accuracy"])
    assert experiment.evaluation.metric == "accuracy:max"
    assert [each.full_name for each in metrics_of(experiment.task, experiment.data)] == [
        "loss:min",
        "accuracy:max",
    ]
    assert "less" not in faults(config, "evaluation.metric=accuracy:min")[0]


def test_title_and_unit_come_from_the_file_or_the_experiment(config: Path) -> None:
    said = Metric(name="accuracy", goal="max", title="hits", unit="share")
    source = 'metrics = [Metric(name="accuracy", goal="max", title="hits")]\n'
    (config.parent / "digits.py").write_text(DIGITS + source)
    experiment = load(config, ["evaluation.metric=accuracy"])
    assert metric_of("accuracy", to_plain(experiment.task)) == said
    assert metrics_of(experiment.task, experiment.data)[-1] == said
    written = {"kind": "three_functions", "module": "digits.py", "titles": {"accuracy": "found"}}
    config.write_text(
        yaml.safe_dump({"name": "digits", "task": written, "evaluation": {"metric": "accuracy"}})
    )
    other = load(config, ["task.units.accuracy=number"])
    assert metric_of("accuracy", to_plain(other.task)) == replace(said, title="found", unit="number")
    assert identity(other) == identity(load(config))
    assert "share" in faults(config, "task.units.accuracy=percent")[0]


def test_metric_of_a_run_without_titles_and_units_is_a_number() -> None:
    stored = {"kind": "three_functions", "module": "digits.py", "metrics": {"accuracy": "max"}}
    assert metric_of("accuracy", stored) == Metric(name="accuracy", goal="max", unit="number")


def test_metric_is_accepted_if_step_cannot_be_read_from_its_text(config: Path) -> None:
    (config.parent / "digits.py").write_text(DIGITS.replace("    return {", "    return 0 or {"))
    assert load(config, ["evaluation.metric=f1:max"]).evaluation.metric == "f1:max"


@pytest.mark.parametrize(
    "given", ["metrics=max", "metrics=[f1]", "metrics=1", "titles=nonsense", "units=share"]
)
@pytest.mark.parametrize("metric", ["loss", "accuracy:max"])
def test_value_in_place_of_the_goals_titles_or_units_is_refused(
    config: Path, given: str, metric: str
) -> None:
    task = ["task={kind: three_functions, module: digits.py}", f"task.{given}"]
    (fault,) = faults(config, *task, f"evaluation.metric={metric}")
    assert f"task.{given.partition('=')[0]}: " in fault
