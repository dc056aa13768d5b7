"""The metric by which the runs of a sweep are ranked, and its goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.errors import UserError
from toolkit.registry import metric_of


def with_split(metric: str) -> str:
    """SPLIT.METRIC; the split is validation if none is given."""
    split, dot, _ = metric.partition(".")
    return metric if dot and "/" not in split else f"validation.{metric}"


def declared_goal(metric: str, task: Mapping[str, Any]) -> str:
    """Return min or max, as the task declares for SPLIT.METRIC.

    task   the task section of a run's config
    Raises UserError if the task does not declare this metric.
    """
    found = metric_of(metric.partition(".")[2], task)
    if found is None:
        raise UserError(
            f"{metric} is not a metric that {task.get('kind') or 'any task'} declares, so it is "
            "unknown whether less or more is better: name another metric, or give --goal min or max"
        )
    return found.goal


def checked_goal(goal: str, metric: str, task: Mapping[str, Any]) -> str:
    """Return the requested goal. Raises UserError if the task declares the other one."""
    found = metric_of(metric.partition(".")[2], task)
    if found is not None and found.goal != goal:
        raise UserError(
            f"found the goal {goal} for {metric}, but {'less' if goal == 'max' else 'more'} is better: "
            f"leave the goal out, or set it to {found.goal}"
        )
    return goal
