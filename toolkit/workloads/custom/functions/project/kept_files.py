"""The user's files that a run keeps: the file of the task, and its imports from the same folder."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

from toolkit.workloads.custom.functions.project.places import OURS, is_file, package_around

#: A larger file in a package that is not code is data.
_LARGEST_BYTES = 1 << 20
#: Names of the folders that packages are installed into.
_INSTALLED = ("site-packages", "dist-packages")
_NO_CODE = ast.Module(body=[], type_ignores=[])
#: Functions that make a path from their first argument.
_PATHS = ("Path", "join", "dirname", "abspath", "realpath")


def project_files(module: str, path: Path, root: Path) -> Iterator[Path]:
    """Find the files of a task's module, within `root`, the folder that its imports are relative to.

    For a module in a package, these are all files of the package; for a file, the file itself. Added are
    modules and packages in `root` that these import, directly or indirectly, and small files there that code
    with `__file__` names.
    """
    return (file for file, _ in _with_trees(module, path, root))


def _with_trees(module: str, path: Path, root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files with their syntax trees; the tree of an installed file is empty."""
    waiting = [path] if is_file(module) else [*_package(root / module.partition(".")[0])]
    if root.name in _INSTALLED:
        # The others there are installed libraries, which the job imports from there.
        yield from ((file, _NO_CODE) for file in waiting)
        return
    seen = {*waiting}
    followed: set[str] = set()
    while waiting:
        file = waiting.pop()
        tree = _syntax_tree(file)
        yield file, tree
        names = _imported(tree) - followed
        followed |= names
        for found in (*filter(_is_kept, _named_beside(root, tree)), *_files_of(names, root)):
            # Of a package, hidden files are not kept either: they may hold secrets.
            is_hidden = any(part.startswith(".") for part in found.relative_to(root).parts)
            if found not in seen and (is_file(module) or not is_hidden):
                seen.add(found)
                waiting.append(found)


def not_kept(module: str, path: Path, root: Path) -> set[Path]:
    """Find files and folders in `root` or above it that code with `__file__` names and no run copies."""
    if root.name in _INSTALLED:
        return set()
    with_copies, found = set[Path](), set[Path]()
    above = _above(root)
    for file, tree in _with_trees(module, path, root):
        with_copies.update((file, *file.parents))
        folders = [each for each in file.parents if each.is_relative_to(root)]
        found.update(_named_above(above, folders, tree), *(_named_beside(folder, tree) for folder in folders))
    return found - with_copies


def own_package(module: str, path: Path, root: Path) -> Path | None:
    """The folder of the package around a task's file, if files that the run keeps import from it."""
    names = {name for _, tree in _with_trees(module, path, root) for name in _imported(tree)}
    return package_around(path, sorted(names))


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


def _syntax_tree(file: Path) -> ast.Module:
    """The syntax tree of a file; empty if it is not Python, or cannot be read."""
    if file.suffix == ".py":
        with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.parse(file.read_bytes())
    return _NO_CODE


def _named_beside(folder: Path, tree: ast.Module) -> Iterator[Path]:
    """Yield what is in a folder under names that are texts of code with `__file__`, such as vocab.json."""
    nodes = list(ast.walk(tree))
    if not any(isinstance(node, ast.Name) and node.id == "__file__" for node in nodes):
        return
    for text in sorted(_texts(nodes)):
        path = Path(text)
        if not path.is_absolute() and ".." not in path.parts and os.path.exists(folder / path):
            yield folder / path


def _above(root: Path) -> Sequence[Path]:
    """The folders above `root` in its project: up to the nearest with .git or pyproject.toml, if any."""
    around = [root, *root.parents]
    for place, folder in enumerate(around):
        if any(os.path.exists(folder / name) for name in (".git", "pyproject.toml")):
            return around[1 : place + 1]
    return []


def _named_above(above: Sequence[Path], below: Sequence[Path], tree: ast.Module) -> Iterator[Path]:
    """Yield paths that code joins to `__file__`, if they exist in a folder above and in none below."""
    for text in sorted(_joined_to_file(tree)) if above else ():
        path = Path(*(part for part in Path(text).parts if part != ".."))
        if path.parts and not any(os.path.exists(folder / path) for folder in below):
            yield from (folder / path for folder in above if os.path.exists(folder / path))


def _joined_to_file(tree: ast.Module) -> set[str]:
    """Texts that are joined to `__file__`, or to a variable made from it: by `/`, joinpath, join or Path."""
    shared, texts = {"__file__"}, set[str]()
    for part in tree.body:
        # Other functions and classes may have other variables of these names.
        is_inner = isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        names = {*shared} if is_inner else shared
        for node in ast.walk(part):
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=value)
                ) if _start(value) in names:
                    names.add(name)
                case ast.BinOp() | ast.Call() if _start(node) in names:
                    texts |= _texts(ast.iter_child_nodes(node))
    return texts


def _start(node: ast.AST | None) -> str:
    """The variable that a path begins with, such as ROOT in `ROOT.parent / "conf"`; empty without one."""
    while True:
        match node:
            case ast.Name(id=name):
                return name
            case (
                ast.BinOp(op=ast.Div(), left=inner)
                | ast.Subscript(value=inner)
                | ast.Attribute(attr="parent" | "parents", value=inner)
                | ast.Call(func=ast.Attribute(attr="resolve" | "absolute" | "joinpath", value=inner))
            ):
                node = inner
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _PATHS:
                node = inner
            case _:
                return ""


def _texts(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _imported(tree: ast.Module) -> set[str]:
    """The top-level names that a file imports, anywhere in its code."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").partition(".")[0])
    return names - {""}
