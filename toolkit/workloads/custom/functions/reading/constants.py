"""Values in a syntax tree that are known without executing the code."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

#: A value that is known only when the code is executed.
UNKNOWN: Any = object()

_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def constants_of(tree: ast.Module) -> dict[str, Any]:
    """Return the names that a module binds exactly once, at its top level, with their known values."""
    found: dict[str, Any] = {}
    times = _bindings(tree)
    for target, value in assigned(tree):
        if isinstance(target, ast.Name) and times[target.id] == 1:
            found[target.id] = value_of(value, found)
    return {name: value for name, value in found.items() if value is not UNKNOWN}


def assigned(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield target and value of each assignment at the top level of a module, with or without a type."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _bindings(tree: ast.Module) -> Counter[str]:
    """How often a module binds each of its names: also in branches and loops, by imports, and by `global`."""
    found: Counter[str] = Counter()
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] += 1
            inner = (each for each in ast.walk(node) if isinstance(each, ast.Global))
            found.update(name for each in inner for name in each.names)
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.alias):
            found[node.asname or node.name.partition(".")[0]] += 1
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found[node.name] += 1
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[node.rest] += 1
        waiting += ast.iter_child_nodes(node)
    return found


def value_of(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """Return the value of a literal, a known name, or arithmetic on these; UNKNOWN for other expressions."""
    if isinstance(node, ast.Name):
        return constants.get(node.id, UNKNOWN)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _computed(node, constants)
    if isinstance(node, ast.List | ast.Tuple):
        values = [value_of(each, constants) for each in node.elts]
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        return values if isinstance(node, ast.List) else tuple(values)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN


def _computed(node: ast.BinOp, constants: Mapping[str, Any]) -> Any:
    left, right = value_of(node.left, constants), value_of(node.right, constants)
    # Numbers only: a text times a large number would fill the memory.
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in (left, right)):
        return UNKNOWN
    try:
        return _OPERATIONS[type(node.op)](left, right)
    except (ArithmeticError, ValueError):
        return UNKNOWN
