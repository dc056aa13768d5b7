"""Read the methods of a task class like the functions of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit

#: Arguments that the toolkit gives to methods, other than the object, by their documented names.
_OTHERS = frozenset({"model", "split", "batch", "samples", "row", "step", "total", "run", "outputs"})
_OBJECT = ("self", "cls")


def class_body(tree: ast.Module, name: str) -> ast.Module:
    """Return the content of a class as if it were a file: methods without `self`. Raises Unfit."""
    found = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None)
    if found is None:
        raise Unfit([Problem(problem=f"has no class {name}", hint=f"class {name}(stk.Task): …")])
    methods = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    problems = [
        Problem(problem=f"{name}.{node.name}{problem}", hint=hint, line=node.lineno)
        for check in (_arguments, _no_parameter, _no_object)
        for node in methods
        for problem, hint in check(node)
    ]
    if problems:
        raise Unfit(problems)
    for node in methods:
        if not is_static(node):
            # `self` has no default, so the defaults stay at the right parameters.
            del (node.args.posonlyargs or node.args.args)[:1]
    return ast.Module(body=found.body, type_ignores=[])


def _arguments(node: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Find required arguments of the constructor."""
    taken = node.args
    places = [*taken.posonlyargs, *taken.args][1:]
    if node.name == "__init__" and (len(places) > len(taken.defaults) or None in taken.kw_defaults):
        names = ", ".join(each.arg for each in places + taken.kwonlyargs)
        hint = "keys of an experiment are parameters of model and data"
        yield f" takes {names}, but the class is called without arguments", hint


def _no_parameter(node: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    if not is_static(node) and not _takes_object(node):
        yield " has no parameter for the object", f"def {node.name}(self, …), or @staticmethod before it"


def is_static(node: ast.FunctionDef) -> bool:
    """Whether a method is one without the object."""
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)


def _no_object(node: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Find a first parameter that is not the object, judging by its name or its annotation."""
    places = [*node.args.posonlyargs, *node.args.args]
    if not places or is_static(node) or not _takes_object(node):
        return
    first = places[0]
    if first.arg in _OTHERS or (first.annotation is not None and first.arg not in _OBJECT):
        hint = f"def {node.name}(self, {first.arg}, …), or @staticmethod before it"
        yield f" takes {first.arg} instead of the object", hint


def _takes_object(node: ast.FunctionDef) -> bool:
    """Whether the first parameter is positional and has no default, like `self`."""
    taken = node.args
    places = len(taken.posonlyargs) + len(taken.args)
    return taken.vararg is not None if not places else len(taken.defaults) < places
