"""Texts of the keys of a section: the strings below the fields of its dataclass, in the source."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache


@cache
def field_docs(section: type) -> Mapping[str, str]:
    """The text below each field of a dataclass or its bases, on one line; `kind` gets the class's text."""
    found = {"kind": (inspect.getdoc(section) or "").partition("\n")[0]}
    for base in reversed([each for each in section.__mro__ if is_dataclass(each)]):
        found |= _own(base)
    return found


def _own(section: type) -> dict[str, str]:
    try:
        (tree,) = ast.parse(inspect.getsource(section)).body
    except OSError:
        # Made by make_dataclass, or installed without its source.
        return {}
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for before, after in itertools.pairwise(tree.body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[before.target.id] = " ".join(text.split())
    return found
