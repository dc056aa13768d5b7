"""Whether less or more of a metric is better: tasks declare it, and an experiment need not say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit import registry
from toolkit.config import Experiment, load_resolved, run_id, to_yaml
from toolkit.errors import Fault
from toolkit.registry import metric_of, task_kinds
from toolkit.workload import LOSS

Good = Callable[..., Experiment]
Broken = Callable[..., list[Fault]]


@pytest.mark.parametrize("kind", task_kinds())
def test_every_task_declares_a_loss_of_which_less_is_better(kind: str) -> None:
    loss = metric_of("loss", kind)
    assert loss is not None
    assert (loss.goal, loss in task_kinds()[kind].metrics) == ("min", True)


def test_recall_is_better_high_and_a_distance_low() -> None:
    goals = {name: getattr(metric_of(name), "goal", None) for name in ("macro_recall", "distance", "none")}
    assert goals == {"macro_recall": "max", "distance": "min", "none": None}


def test_a_name_that_two_tasks_declare_differently_means_nothing_without_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = replace(task_kinds()["toy_points"], metrics=(replace(LOSS, name="accuracy"),))
    monkeypatch.setattr(registry, "_KINDS", {**task_kinds(), "other": row})
    registry._agreed.cache_clear()
    try:
        assert metric_of("accuracy") is None
        assert getattr(metric_of("accuracy", "other"), "goal", None) == "min"
        assert getattr(metric_of("accuracy", "toy_texts"), "goal", None) == "max"
    finally:
        registry._agreed.cache_clear()


@pytest.mark.parametrize("metric, whole", [("accuracy", "accuracy:max"), ("loss", "loss:min")])
def test_a_metric_alone_means_the_same_run_as_with_its_goal(good: Good, metric: str, whole: str) -> None:
    alone, written = good(evaluation={"metric": metric}), good(evaluation={"metric": whole})
    assert alone.evaluation.metric == whole
    assert run_id(alone) == run_id(written)


@pytest.mark.parametrize("metric", ["accuracy:min", "loss:max"])
def test_the_wrong_goal_is_refused_and_the_right_one_is_told(broken: Broken, metric: str) -> None:
    (fault,) = broken(evaluation={"metric": metric})
    name, _, goal = metric.partition(":")
    assert fault.key == "evaluation.metric"
    assert name in fault.problem
    assert {"min": f"{name}:max", "max": f"{name}:min"}[goal] in fault.hint


def test_a_goal_that_a_run_recorded_is_read_as_it_stands(good: Good, tmp_path: Path) -> None:
    stored = tmp_path / "config.yaml"
    stored.write_text(to_yaml(good()).replace("loss:min", "accuracy:min"))
    assert load_resolved(stored).evaluation.metric == "accuracy:min"


def test_an_unknown_metric_without_a_goal_is_told_with_those_that_there_are(
    broken: Broken,
) -> None:
    (fault,) = broken(evaluation={"metric": "acuracy"})
    assert "macro_f1" in fault.problem
    assert "accuracy" in fault.hint
