"""Values in a syntax tree that are known without executing the code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
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
    """Return the names that the top level of a module assigns exactly once, with their known values."""
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
