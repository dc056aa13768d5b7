"""Figures of reports without drawing them, in each Python process that has this folder on PYTHONPATH.

Drawing takes a process longer than all of its training. What is drawn is tested in tests/toolkit/report, and
the README's commands and the probed jobs of tests/cluster draw.
"""

from __future__ import annotations

import base64
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

#: One white pixel.
_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)


class _Undrawn(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.__dict__["_drawn"] = lambda code, arguments, theme: _PNG


class _Blocks(PathFinder):
    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != "toolkit.report.blocks":
            return None
        spec = super().find_spec(fullname, path, target)
        if spec and spec.origin:
            spec.loader = _Undrawn(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, _Blocks)
