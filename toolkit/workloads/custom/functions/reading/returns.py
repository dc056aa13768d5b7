"""The names in the dictionary that a function returns, where its text says them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class NotAlike(Exception):
    """Two places return different names."""

    def __init__(self, names: tuple[str, ...], before: tuple[str, ...], line: int) -> None:
        self.names, self.before, self.line = names, before, line
        super().__init__(f"line {line}")


def returned_names(function: ast.FunctionDef) -> tuple[str, ...] | None:
    """The names that a function returns, in their order; none at all where it returns nothing.

    None where only executing it would tell. Raises NotAlike.
    """
    found: tuple[str, ...] = ()
    for node in _returns(function.body):
        names = _names(node.value)
        if names is None:
            return None
        if found and set(names) != set(found):
            raise NotAlike(names, found, node.lineno)
        found = found or names
    return found


def _returns(body: list[ast.stmt]) -> Iterator[ast.Return]:
    """The returns of a function, without those of functions within it."""
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
