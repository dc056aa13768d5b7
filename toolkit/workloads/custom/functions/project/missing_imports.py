"""Packages that a task's file imports, and that are not installed here. Executes nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from toolkit.system.output.nearest import guess
from toolkit.workload import Violation
from toolkit.workloads.custom.functions.project.kept_files import project_files, syntax_tree
from toolkit.workloads.custom.functions.project.places import OURS, root_of
from toolkit.workloads.custom.functions.reading.signatures import Functions

#: Modules with which a file can change where Python looks for modules, and their attributes for this.
_SEARCHING = ("sys", "site")
_SEARCHED = ("path", "meta_path", "modules", "addsitedir")


def missing_imports(experiment: Any, functions: Functions) -> Iterator[Violation]:
    """Find imports at the top of the file that fail here. A job with another environment may have them."""
    module, resources = experiment.task.module, experiment.resources
    if getattr(resources, "setup", ()) or "PYTHONPATH" in getattr(resources, "environment", {}):
        return
    path, root = functions.path, root_of(module, functions.path)
    folders = [str(root), *sys.path]
    missing: dict[str, int] = {}
    for name, line in functions.imports.items():
        package = name.partition(".")[0]
        if package not in missing and not _is_here(package, folders):
            missing[package] = line
    # Seldom needed, and takes longer than the rest.
    files = project_files(module, path, root) if missing else ()
    if any(_changes_the_search(syntax_tree(each)) for each in files):
        return
    for package, line in missing.items():
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


def _changes_the_search(tree: ast.Module) -> bool:
    """Whether a file may itself tell Python where to look, as with `sys.path.append`."""
    nodes = [*ast.walk(tree)]
    imports = [each for node in nodes if isinstance(node, ast.Import) for each in node.names]
    modules = {each.asname or each.name for each in imports if each.name in _SEARCHING}
    read = [each for each in nodes if isinstance(each, ast.Attribute) and each.attr in _SEARCHED]
    from_them = [each for each in nodes if isinstance(each, ast.ImportFrom) and each.module in _SEARCHING]
    return any(isinstance(each.value, ast.Name) and each.value.id in modules for each in read) or any(
        each.name in _SEARCHED for node in from_them for each in node.names
    )
