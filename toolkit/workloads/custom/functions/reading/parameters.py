"""The parameters of a function, with types and defaults, from its syntax tree."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Any

from toolkit.workloads.custom.functions.reading.constants import UNKNOWN, value_of

#: The default of a parameter that must be given.
REQUIRED: Any = object()

_TYPES: Mapping[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "Path": Path, "Any": Any}
_MANY = ("list", "List", "tuple", "Tuple", "Sequence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter that an experiment file may set.

    hint     int, float, bool, str, Path, Any, or a tuple of int, float or str; each may also be `| None`
    default  REQUIRED if it must be given
    many     the type in which the function gets a list: list or tuple
    """

    name: str
    hint: Any
    default: Any = REQUIRED
    many: type = list
    line: int = 0

    def given(self, value: Any) -> Any:
        """Return the function's argument for the plain value of an experiment."""
        if isinstance(value, list):
            return self.many(value)
        return Path(value) if isinstance(value, str) and self.hint in (Path, Path | None) else value


def with_defaults(taken: ast.arguments, skipped: int) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield the parameters after the first `skipped` ones, each with its default or None."""
    places = [*taken.posonlyargs, *taken.args]
    defaults: list[ast.expr | None] = [None] * (len(places) - len(taken.defaults))
    yield from [*zip(places, [*defaults, *taken.defaults], strict=True)][skipped:]
    yield from zip(taken.kwonlyargs, taken.kw_defaults, strict=True)


def parameters_of(
    function: ast.FunctionDef, skipped: int, constants: Mapping[str, Any]
) -> Iterator[Parameter]:
    """Yield the parameters that an experiment may set, after the first `skipped` ones.

    A parameter with a default that the source does not show cannot be set.
    """
    for argument, node in with_defaults(function.args, skipped):
        default = REQUIRED if node is None else value_of(node, constants)
        if default is UNKNOWN or not _is_plain(default):
            continue
        yield Parameter(
            name=argument.arg,
            hint=_hint(argument.annotation, default),
            default=default,
            many=tuple if isinstance(default, tuple) or _names_tuple(argument.annotation) else list,
            line=argument.lineno,
        )


def _names_tuple(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("tuple", "Tuple")


def _is_plain(default: Any) -> bool:
    """Whether YAML can hold a value."""
    if isinstance(default, list | tuple):
        return all(map(_is_plain, default))
    if isinstance(default, dict):
        return all(isinstance(name, str) and _is_plain(value) for name, value in default.items())
    if isinstance(default, float):
        return math.isfinite(default)
    return default is REQUIRED or default is None or isinstance(default, int | str)


def _hint(annotation: ast.expr | None, default: Any) -> Any:
    """Return the type that values are checked against. The default has it, too. Any if it is unknown."""
    hint = Any if annotation is None else _annotated(annotation)
    if annotation is None and default is not REQUIRED and default is not None:
        hint = _type_of(default)
    if hint is Any or default is REQUIRED:
        return hint
    if default is None:
        return hint if _is_optional(hint) else hint | None
    return hint if fits(hint, default) else Any


def _annotated(node: ast.expr) -> Any:
    """Return the type that an annotation names, if an experiment file can hold it; else Any."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotated(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return Any
    if isinstance(node, ast.Name | ast.Attribute):
        return _TYPES.get(_last_name(node), Any)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _optional([node.left, node.right])
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name | ast.Attribute):
        return _subscripted(_last_name(node.value), node.slice)
    return Any


def _subscripted(name: str, inside: ast.expr) -> Any:
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Optional" and len(parts) == 1:
        return _optional([parts[0], ast.Constant(None)])
    if name == "Union" and len(parts) == 2:
        return _optional(parts)
    types = {_annotated(each) for each in parts if not (isinstance(each, ast.Constant) and each.value is ...)}
    if name not in _MANY or len(types) != 1 or not types <= {int, float, str}:
        return Any
    return GenericAlias(tuple, (types.pop(), ...))


def _optional(parts: Sequence[ast.expr]) -> Any:
    """Return `T | None` if one of two types is None, else Any."""
    others = [each for each in parts if not (isinstance(each, ast.Constant) and each.value is None)]
    hint = _annotated(others[0]) if len(others) == 1 else Any
    return Any if hint is Any else hint | None


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _is_optional(hint: Any) -> bool:
    return hint is Any or type(None) in getattr(hint, "__args__", ())


def _type_of(default: Any) -> Any:
    if isinstance(default, bool | int | float | str):
        return type(default)
    if isinstance(default, list | tuple) and default:
        types = {type(each) for each in default}
        if types == {int, float}:
            types = {float}
        if len(types) == 1 and types <= {int, float, str}:
            return GenericAlias(tuple, (types.pop(), ...))
    return Any


def fits(hint: Any, value: Any) -> bool:
    """Whether a plain value has the type of a parameter."""
    if hint is Any:
        return True
    if value is None:
        return _is_optional(hint)
    if isinstance(hint, UnionType):
        (hint,) = [each for each in hint.__args__ if each is not type(None)]
    if isinstance(hint, GenericAlias):
        return isinstance(value, list | tuple) and all(_is_a(each, hint.__args__[0]) for each in value)
    return _is_a(value, hint)


def _is_a(value: Any, kind: Any) -> bool:
    wanted: Any = {float: (int, float), Path: str}.get(kind, kind)
    return isinstance(value, wanted) and (kind is bool or not isinstance(value, bool))
