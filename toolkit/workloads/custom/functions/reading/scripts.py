"""Whether a Python file is a script, rather than the functions of a task, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

#: Functions that a file of a task may not leave out.
NEEDED = ("model", "data", "step")


def is_script_file(path: Path) -> bool:
    """Whether a file is a script; false if it cannot be read as Python."""
    try:
        return is_script(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
        return False


def is_script(tree: ast.Module) -> bool:
    """Whether a file has none of the needed functions, and no class with all of them.

    A variable, such as `step = 0` or `model = Net()`, is no function.
    """
    functions = {*_functions(tree), *(name for name, _ in defined_conditionally(tree))}
    imports = {each.asname or each.name for each in _imported(tree)}
    classes = (each for each in tree.body if isinstance(each, ast.ClassDef))
    return (
        functions.isdisjoint(NEEDED)
        and "step" not in imports
        and not any({*_functions(each)}.issuperset(NEEDED) for each in classes)
    )


def defined_conditionally(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions that are defined in branches of `if` and `try`, with their lines."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        # A file that is imported does not execute its `if __name__ == "__main__":`.
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
            inner = list(ast.iter_child_nodes(node))
            yield from ((each.name, each.lineno) for each in inner if isinstance(each, ast.FunctionDef))
            waiting += inner


def _functions(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    return (each.name for each in tree.body if isinstance(each, ast.FunctionDef))


def _imported(tree: ast.Module) -> Iterator[ast.alias]:
    return (name for each in tree.body if isinstance(each, ast.ImportFrom) for name in each.names)
