"""Whether more or less of `evaluation.metric` is better: the task declares it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from toolkit.config.faults import Faults
from toolkit.config.schema import Experiment
from toolkit.registry import metrics_of, task_kinds
from toolkit.system.output.nearest import guess
from toolkit.workload import Violation, rule


@rule("task.kind", "evaluation.metric")
def _metric(experiment: Experiment) -> Iterator[Violation]:
    name = experiment.evaluation.metric.partition(":")[0]
    metrics = [each.name for each in metrics_of(experiment.task, experiment.data)]
    if name not in metrics:
        problem = f"found the metric {name}, expected one of {', '.join(metrics)}"
        yield Violation(key=("evaluation", "metric"), problem=problem, hint=guess(name, metrics))


@rule("task.kind", "evaluation.metric", holds_for_stored=False)
def _goal(experiment: Experiment) -> Iterator[Violation]:
    name, _, goal = experiment.evaluation.metric.partition(":")
    metrics = {each.name: each for each in metrics_of(experiment.task, experiment.data)}
    metric = metrics.get(name)
    if metric is not None and goal != metric.goal:
        less = "less" if metric.goal == "min" else "more"
        problem = f"found {goal}, but for {name} {less} is better"
        hint = f"{name}, or {name}:{metric.goal}"
        yield Violation(key=("evaluation", "metric"), problem=problem, hint=hint)


RULES = (_metric, _goal)


def are_metrics_known(experiment: Experiment, faults: Faults) -> bool:
    """Whether all keys that determine the metrics of the experiment are valid."""
    if experiment.task is None or faults.doubts([("task", "kind"), ("evaluation", "metric")]):
        return False
    keys = task_kinds()[experiment.task.kind].metric_keys
    return not faults.doubts(tuple(key.split(".")) for key in keys)


def with_goal(experiment: Experiment) -> Experiment:
    """The experiment with the goal that its task declares, if its metric has none."""
    name = experiment.evaluation.metric
    found = (each for each in metrics_of(experiment.task, experiment.data) if each.name == name)
    metric = next(found, None)
    if metric is None:
        return experiment
    return replace(experiment, evaluation=replace(experiment.evaluation, metric=metric.full_name))
