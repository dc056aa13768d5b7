"""Values that a syntax tree shows without being executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

#: A value that only executing the code would give.
UNKNOWN: Any = object()

_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def constants_of(tree: ast.Module) -> dict[str, Any]:
    """The names that are given a known value at the top of a module, once only."""
    found: dict[str, Any] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                is_new = target.id not in found
                found[target.id] = value_of(node.value, found) if is_new else UNKNOWN  # type: ignore[attr-defined]
    return {name: value for name, value in found.items() if value is not UNKNOWN}


def value_of(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """The value of an expression: a literal, a name of a known value, or arithmetic on them; else UNKNOWN."""
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
