"""By which metric the runs of a sweep are ranked, and which way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.errors import UserError
from toolkit.registry import metric_of


def with_split(metric: str) -> str:
    """SPLIT.METRIC; of the validation set where no split is given."""
    split, dot, _ = metric.partition(".")
    return metric if dot and "/" not in split else f"validation.{metric}"


def declared_goal(metric: str, task: Mapping[str, Any]) -> str:
    """Return min or max, as the task declares for SPLIT.METRIC.

    task   its section, as a run stores it
    Raises UserError where it declares no such metric.
    """
    found = metric_of(metric.partition(".")[2], task)
    if found is None:
        raise UserError(
            f"{metric} is not a metric that {task.get('kind') or 'any task'} declares, so it is "
            "unknown whether less or more is better: name another metric, or give --goal min or max"
        )
    return found.goal


def checked_goal(goal: str, metric: str, task: Mapping[str, Any]) -> str:
    """Return a goal that was asked for. Raises UserError where the task declares the other one."""
    found = metric_of(metric.partition(".")[2], task)
    if found is not None and found.goal != goal:
        raise UserError(
            f"found the goal {goal} for {metric}, of which {'less' if goal == 'max' else 'more'} is better: "
            f"leave the goal out, or set it to {found.goal}"
        )
    return goal
