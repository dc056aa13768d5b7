"""The metrics that `step` returns: goals, titles and units from the user's file and the experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolkit.system.output.nearest import guess
from toolkit.workload import Metric, Violation
from toolkit.workloads.custom.functions.reading.metric_names import GOALS
from toolkit.workloads.custom.functions.reading.signatures import LOSS, Functions
from toolkit.workloads.custom.functions.sections.classes import FunctionsTask


def metrics_of(task: FunctionsTask) -> Sequence[Metric]:
    """The metrics whose goal is known."""
    goals: Mapping[str, Any] = task.metrics
    # Runs of earlier versions have no titles and units.
    titles: Mapping[str, Any] = getattr(task, "titles", {})
    units: Mapping[str, Any] = getattr(task, "units", {})
    return [
        Metric(name=name, goal=goal, title=str(titles.get(name, "")), unit=units.get(name, "number"))
        for name, goal in goals.items()
    ]


def metric_keys(functions: Functions, task: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys `metrics`, `titles` and `units` of the task section, each by metric."""
    declared = functions.declared
    titles = {each.name: each.title for each in declared if each.title}
    units = {each.name: "share" for each in declared if each.unit == "share"}
    return {
        "metrics": _goals(functions, task, tree),
        "titles": _with_written(titles, task, "titles"),
        "units": _with_written(units, task, "units"),
    }


def _metric_and_goal(tree: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and goal of evaluation.metric; empty if not given."""
    evaluation = tree.get("evaluation")
    metric = evaluation.get("metric") if isinstance(evaluation, dict) else None
    name, _, goal = metric.partition(":") if isinstance(metric, str) else ("", "", "")
    return name, goal


def _goals(functions: Functions, task: Mapping[str, Any], tree: Mapping[str, Any]) -> Any:
    """Return the declared goals of metrics, by name; a written value that is no mapping as it is."""
    goals = _with_written({each.name: each.goal for each in functions.declared}, task, "metrics")
    name, goal = _metric_and_goal(tree)
    if not isinstance(goals, dict):
        return goals
    return {**({name: goal} if name != LOSS and goal in GOALS else {}), **goals}


def _with_written(said: Mapping[str, Any], task: Mapping[str, Any], key: str) -> Any:
    """Return the file's declarations of its metrics, overridden by those of the experiment.

    A value that is no mapping is returned as it is: the checker refuses it.
    """
    written = task.get(key)
    if written is None:
        return dict(said)
    return {**said, **written} if isinstance(written, dict) else written


def metric_faults(
    functions: Functions, task: Mapping[str, Any], tree: Mapping[str, Any]
) -> Iterator[Violation]:
    """Find an evaluation.metric that `step` does not return, or that has no goal."""
    name, goal = _metric_and_goal(tree)
    key = ("evaluation", "metric")
    # Another goal is a fault of the form of evaluation.metric.
    if name in ("", LOSS) or goal not in ("", *GOALS):
        return
    if functions.metrics is not None and name not in functions.metrics:
        yield _not_returned(name, functions.metrics, functions, key)
    elif not goal and isinstance(goals := _goals(functions, task, tree), dict) and name not in goals:
        problem = f"found {name}, but its goal is not declared"
        yield Violation(key=key, problem=problem, hint=f"{name}:max, or {name}:min")


def unknown_metrics(task: FunctionsTask, functions: Functions) -> Iterator[Violation]:
    """Find goals, titles and units of metrics that `step` does not return."""
    if functions.metrics is None:
        return
    known = {LOSS, *functions.metrics}
    for key in ("metrics", "titles", "units"):
        for name in (each for each in getattr(task, key) if each not in known):
            known.add(name)
            yield _not_returned(name, functions.metrics, functions, ("task", key, name))


def _not_returned(name: str, metrics: Sequence[str], functions: Functions, key: tuple[str, ...]) -> Violation:
    returned = [LOSS, *metrics]
    place = f"{functions.path.name}:{functions.lines['step']}"
    problem = f"found {name}, but step ({place}) returns {', '.join(returned)}"
    hint = guess(name, returned) or f'return {{"loss": …, "{name}": one_value_per_sample}}'
    return Violation(key=key, problem=problem, hint=hint)
