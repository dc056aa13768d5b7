"""The metrics whose goals a file says."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.workload import Goal, Metric
from toolkit.workloads.custom.functions.reading.constants import value_of
from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit


def declared_metrics(tree: ast.Module, constants: Mapping[str, Any]) -> Iterator[Metric]:
    """The metrics in `metrics = {"accuracy": "max"}` or `metrics = [Metric(name="accuracy", goal="max")]`."""
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and any(_is_name(each, "metrics") for each in node.targets)):
            continue
        found = value_of(node.value, constants)
        if isinstance(found, dict):
            yield from (
                _metric({"name": name, "goal": goal, "unit": "number"}, node.lineno)
                for name, goal in found.items()
            )
        elif isinstance(node.value, ast.List | ast.Tuple):
            yield from (_called(each, constants) for each in node.value.elts)
        else:
            raise _no_metrics(node.lineno)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _called(node: ast.expr, constants: Mapping[str, Any]) -> Metric:
    """The metric of an expression `Metric(…)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)):
        raise _no_metrics(node.lineno)
    facts = dict(zip(("name", "goal"), (value_of(each, constants) for each in node.args), strict=False))
    facts |= {each.arg or "": value_of(each.value, constants) for each in node.keywords}
    return _metric(facts, node.lineno)


def _metric(facts: Mapping[str, Any], line: int) -> Metric:
    goals: Mapping[Any, Goal] = {"min": "min", "max": "max"}
    name, goal = facts.get("name"), facts.get("goal")
    unit, title = facts.get("unit", "share"), facts.get("title", "")
    is_text = isinstance(name, str) and isinstance(title, str) and isinstance(goal, str)
    if not is_text or goal not in goals or unit not in ("share", "number"):
        raise _no_metrics(line)
    assert isinstance(name, str)
    return Metric(name=name, goal=goals[goal], title=title, unit=unit)


def _no_metrics(line: int) -> Unfit:
    problem = "metrics says no names with goals that can be read here"
    return Unfit([Problem(problem=problem, hint='metrics = {"accuracy": "max", "error": "min"}', line=line)])
