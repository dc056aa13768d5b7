"""The user's files that a run keeps: the file of the task, and its imports from the same folder."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from toolkit.errors import UserError
from toolkit.system.output.few import few
from toolkit.workload import Violation
from toolkit.workloads.custom.functions.project.places import (
    OURS,
    PROJECT,
    as_module,
    is_file,
    locate,
    package_around,
    root_of,
)
from toolkit.workloads.custom.functions.reading.problems import Unfit

#: A larger file in a package that is not code is data.
_LARGEST_BYTES = 1 << 20
_MODULE = ("task", "module")
#: Names of the folders that packages are installed into.
_INSTALLED = ("site-packages", "dist-packages")


def kept_files(experiment: Any) -> Iterable[tuple[Path, str]]:
    """The user's files that a run of the task keeps, each with its place in the folder of the code.

    Raises UserError if they are missing.
    """
    task = experiment.task
    try:
        path = locate(task.module, [task.code_folder])
    except Unfit as unfit:
        raise UserError(f"the task's code is gone: {unfit}") from unfit
    root = root_of(task.module, path)
    for file in project_files(task.module, path, root):
        yield file, f"{PROJECT}/{file.relative_to(root)}"


def files_not_kept(module: str, path: Path) -> Iterator[Violation]:
    """Find what the code of a task's module, the file `path`, may read or import, and would lack in a run."""
    root = root_of(module, path)
    kept = {*project_files(module, path, root)}
    if names := sorted(str(each.relative_to(root)) for each in not_kept(kept, root)):
        problem = f"a run keeps no copy of {few(names, 5)} beside {path.name}"
        hint = "if the code reads them by `__file__`, name them relative to the working directory instead"
        yield Violation(key=_MODULE, problem=problem, hint=hint)
    if not is_file(module):
        return
    imported = {name for file in kept for name in _imported(syntax_tree(file))}
    if (package := package_around(path, sorted(imported))) is not None:
        problem = f"the run of a file keeps no copy of the package {package.name}, which its code imports"
        yield Violation(key=_MODULE, problem=problem, hint=as_module(path, package))


def project_files(module: str, path: Path, root: Path) -> Iterator[Path]:
    """Find the files of a task's module, within `root`, the folder that its imports are relative to.

    For a module in a package, these are all files of the package; for a file, the file itself. Added are
    modules and packages in `root` that these import, directly or indirectly, and small files there that code
    with `__file__` names.
    """
    waiting = [path] if is_file(module) else [*_package(root / module.partition(".")[0])]
    if root.name in _INSTALLED:
        # The others there are installed libraries, which the job imports from there.
        yield from waiting
        return
    seen = {*waiting}
    followed: set[str] = set()
    while waiting:
        file = waiting.pop()
        yield file
        tree = syntax_tree(file)
        names = _imported(tree) - followed
        followed |= names
        for found in (*filter(_is_kept, _named_beside(root, tree)), *_files_of(names, root)):
            # Of a package, hidden files are not kept either: they may hold secrets.
            is_hidden = any(part.startswith(".") for part in found.relative_to(root).parts)
            if found not in seen and (is_file(module) or not is_hidden):
                seen.add(found)
                waiting.append(found)


def not_kept(kept: set[Path], root: Path) -> set[Path]:
    """Find folders and large files that kept code with `__file__` names, and of which a run has no copy."""
    if root.name in _INSTALLED:
        return set()
    with_copies = {*kept, *(folder for file in kept for folder in file.parents)}
    found: set[Path] = set()
    for file in kept:
        tree = syntax_tree(file)
        for folder in (each for each in file.parents if each.is_relative_to(root)):
            found.update(_named_beside(folder, tree))
    return found - with_copies


def _files_of(names: set[str], root: Path) -> Iterator[Path]:
    """Yield the files of the modules and packages of these names in `root`."""
    for name in sorted(names - OURS - sys.stdlib_module_names):
        if (module := root / f"{name}.py").is_file():
            yield module
        elif (root / name).is_dir() and not _is_library(name, root):
            yield from _package(root / name)


def _is_library(name: str, root: Path) -> bool:
    """Whether Python would import an installed library of that name, and not the folder in `root`."""
    elsewhere = [path for path in sys.path if path and Path(path).resolve() != root.resolve()]
    found = None if (root / name / "__init__.py").is_file() else PathFinder.find_spec(name, elsewhere)
    return found is not None and found.loader is not None


def _package(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for path in (Path(place, name) for name in sorted(names) if not name.startswith(".")):
            if _is_kept(path):
                yield path


def _is_kept(path: Path) -> bool:
    return path.is_file() and (path.suffix in (".py", ".so") or path.stat().st_size <= _LARGEST_BYTES)


def syntax_tree(file: Path) -> ast.Module:
    """The syntax tree of a file; empty if it is not Python, or cannot be read."""
    if file.suffix == ".py":
        with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.parse(file.read_bytes())
    return ast.Module(body=[], type_ignores=[])


def _named_beside(folder: Path, tree: ast.Module) -> Iterator[Path]:
    """Yield what is in a folder under names that are texts of code with `__file__`, such as vocab.json."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Name) and node.id == "__file__" for node in nodes):
        return
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for text in sorted(texts):
        path = Path(text)
        if not path.is_absolute() and ".." not in path.parts and os.path.exists(folder / path):
            yield folder / path


def _imported(tree: ast.Module) -> set[str]:
    """The top-level names that a file imports, anywhere in its code."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").partition(".")[0])
    return names - {""}
