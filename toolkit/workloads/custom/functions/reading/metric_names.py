"""The metrics of a file: the names that `step` returns, if its source shows them, and the declared goals."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from toolkit.system.output.nearest import guess
from toolkit.workload import Goal, Metric, Unit
from toolkit.workloads.custom.functions.reading.constants import UNKNOWN, assigned, value_of
from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit

#: Whether less or more of a metric is better.
GOALS: tuple[Goal, ...] = ("min", "max")
UNITS: tuple[Unit, ...] = ("number", "share")
_EXAMPLE = 'metrics = {"accuracy": "max", "error": "min"}'
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def returned_names(step: ast.FunctionDef) -> tuple[str, ...] | None:
    """Return the names in the dictionary that `step` returns, in order; an empty tuple if it returns nothing.

    None if they are known only at run time. Raises Unfit if two places return different names.
    """
    found: tuple[str, ...] = ()
    for node in _returns(step.body):
        names = _names(node.value)
        if names is None:
            return None
        if found and set(names) != set(found):
            problem = f"step returns {', '.join(names)} here, but {', '.join(found)} elsewhere"
            hint = "return the same names each time"
            raise Unfit([Problem(problem=problem, hint=hint, line=node.lineno)])
        found = found or names
    return found


def _returns(body: list[ast.stmt]) -> Iterator[ast.Return]:
    """Yield the return statements of a function, without those of nested functions."""
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, _SCOPES):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _names(value: ast.expr | None) -> tuple[str, ...] | None:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return ()
    if isinstance(value, ast.Dict):
        names = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        names = [*(each.arg for each in value.keywords), *(None for _ in value.args)]
    else:
        return None
    known = tuple(name for name in names if isinstance(name, str))
    return known if len(known) == len(names) else None


def declared_metrics(tree: ast.Module, constants: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the metrics of `metrics = {"accuracy": "max"}` or `metrics = [Metric("accuracy", "max")]`."""
    typed = {node.target for node in tree.body if isinstance(node, ast.AnnAssign)}
    for target, value in assigned(tree):
        if ast.unparse(target) != "metrics":
            continue
        found = value_of(value, constants)
        if isinstance(found, dict):
            yield from (
                _metric({"name": name, "goal": goal, "unit": "number"}, target.lineno)
                for name, goal in found.items()
            )
        elif isinstance(value, ast.List | ast.Tuple):
            yield from (_called(each, constants) for each in value.elts)
        elif target not in typed or isinstance(value, ast.Dict):
            # With a type it may be something else, such as a collection of another library.
            raise _no_metrics(target.lineno)


def _called(node: ast.expr, constants: Mapping[str, Any]) -> Metric:
    """Return the metric of an expression `Metric(…)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)):
        raise _no_metrics(node.lineno)
    facts = dict(zip(("name", "goal"), (value_of(each, constants) for each in node.args), strict=False))
    facts |= {each.arg or "": value_of(each.value, constants) for each in node.keywords}
    return _metric(facts, node.lineno)


def _metric(facts: Mapping[str, Any], line: int) -> Metric:
    name, title = facts.get("name"), facts.get("title", "")
    goal: Any = facts.get("goal")
    unit: Any = facts.get("unit", "share")
    if not (isinstance(name, str) and isinstance(title, str)) or UNKNOWN in (goal, unit):
        raise _no_metrics(line)
    for what, found, allowed in (("goal", goal, GOALS), ("unit", unit, UNITS)):
        if found not in allowed:
            problem = f"metrics has the {what} {found!r} of {name}, expected {' or '.join(allowed)}"
            raise Unfit([Problem(problem=problem, hint=guess(found, allowed) or _EXAMPLE, line=line)])
    return Metric(name=name, goal=goal, title=title, unit=unit)


def _no_metrics(line: int) -> Unfit:
    problem = "metrics has no names with goals that are literal values"
    return Unfit([Problem(problem=problem, hint=_EXAMPLE, line=line)])
