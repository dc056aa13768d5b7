"""Packages that a task's file imports, and that are not installed here. Executes nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from toolkit.system.output.nearest import guess
from toolkit.workload import Violation
from toolkit.workloads.custom.functions.project.places import OURS, locate, root_of
from toolkit.workloads.custom.functions.reading.signatures import read_functions

_SEARCHED = ("path", "meta_path", "modules", "addsitedir")


def missing_imports(experiment: Any) -> Iterator[Violation]:
    """Find imports at the top of the file that fail here. A job with another environment may have them."""
    task, resources = experiment.task, experiment.resources
    if getattr(resources, "setup", ()) or "PYTHONPATH" in getattr(resources, "environment", {}):
        return
    path = locate(task.module, [task.code_folder])
    if _changes_the_search(path):
        return
    folders = [str(root_of(task.module, path)), str(Path.cwd()), *sys.path]
    seen: set[str] = set()
    for name, line in read_functions(path, task.class_name).imports.items():
        package = name.partition(".")[0]
        if package in seen or _is_here(package, folders):
            continue
        seen.add(package)
        hint = guess(package, (each.name for each in iter_modules(folders)))
        problem = f"{path.name}:{line} imports {package}, and there is no such module here"
        yield Violation(
            key=("task", "module"), problem=problem, hint=hint or "the run fails where it is missing"
        )


def _is_here(package: str, folders: list[str]) -> bool:
    """Whether Python finds a package; true for a relative import."""
    if not package or package in sys.modules or package in {*sys.stdlib_module_names, *OURS}:
        return True
    return (PathFinder.find_spec(package, folders) or find_spec(package)) is not None


def _changes_the_search(path: Path) -> bool:
    """Whether a file may itself tell Python where to look, as with `sys.path.append`."""
    nodes = (each for each in ast.walk(ast.parse(path.read_bytes())) if isinstance(each, ast.Attribute))
    return any(ast.unparse(each.value) in ("sys", "site") and each.attr in _SEARCHED for each in nodes)
