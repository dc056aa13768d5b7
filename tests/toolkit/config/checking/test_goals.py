"""Whether less or more of a metric is better: tasks declare it, and an experiment need not say it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolkit import registry
from toolkit.config import load_resolved, run_id, to_yaml
from toolkit.registry import declared_metrics, metric_of, task_kinds
from toolkit.workload import LOSS, shares


@pytest.mark.parametrize("kind", task_kinds())
def test_every_task_declares_a_loss_with_goal_min(kind):
    loss = metric_of("loss", {"kind": kind})
    assert (loss.goal, loss in task_kinds()[kind].metrics) == ("min", True)


def test_a_task_that_is_not_installed_has_only_the_loss():
    assert declared_metrics({"kind": "gone"}) == declared_metrics({}) == {"loss": LOSS}


def test_a_damaged_task_section_loses_only_the_metrics_that_it_adds(monkeypatch):
    spec = replace(task_kinds()["toy_points"], task_metrics=lambda task: shares(*task.scores))
    monkeypatch.setattr(registry, "_KINDS", {"toy_points": spec})
    assert [*declared_metrics({"kind": "toy_points", "scores": ["f1"]})] == ["loss", "distance", "f1"]
    damages: tuple[dict[Any, Any], ...] = ({}, {"scores": 3}, {3: 4})
    for damage in damages:
        assert [*declared_metrics({"kind": "toy_points", **damage})] == ["loss", "distance"]


def test_the_metric_is_not_checked_if_a_key_it_depends_on_has_a_fault(broken, monkeypatch):
    named = {"metric": "accuracy/rare"}
    assert {each.key for each in broken(evaluation=named, data={"min_count": "many"})} == {
        "evaluation.metric",
        "data.min_count",
    }
    spec = replace(task_kinds()["toy_texts"], metric_keys=("data.min_count",))
    monkeypatch.setattr(registry, "_KINDS", {**task_kinds(), "toy_texts": spec})
    assert {each.key for each in broken(evaluation=named, data={"min_count": "many"})} == {"data.min_count"}


@pytest.mark.parametrize("metric, whole", [("accuracy", "accuracy:max"), ("loss", "loss:min")])
def test_a_metric_with_and_without_its_goal_gives_the_same_run_id(good, metric, whole):
    alone, written = good(evaluation={"metric": metric}), good(evaluation={"metric": whole})
    assert alone.evaluation.metric == whole
    assert run_id(alone) == run_id(written)


@pytest.mark.parametrize("metric", ["accuracy:min", "loss:max"])
def test_a_wrong_goal_is_refused_and_the_right_one_is_suggested(broken, metric):
    (fault,) = broken(evaluation={"metric": metric})
    name, _, goal = metric.partition(":")
    assert fault.key == "evaluation.metric"
    assert name in fault.problem
    assert {"min": f"{name}:max", "max": f"{name}:min"}[goal] in fault.hint


def test_a_recorded_goal_is_read_without_a_check(good, tmp_path):
    stored = tmp_path / "config.yaml"
    stored.write_text(to_yaml(good()).replace("loss:min", "accuracy:min"))
    assert load_resolved(stored).evaluation.metric == "accuracy:min"
