"""Where the user's code is: in the place that an experiment names, or in the folder of a run."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath

from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit

#: The folder of the user's files, within the folder of a run's code.
PROJECT = "project"
#: The folder that contains this package: a run's copy of the code, or an installation.
CODE = Path(__file__).resolve().parents[5]

#: The packages of this project, and all its modules. They may be in the same folder as the user's file.
_OUR_PACKAGES = ("toolkit", "slurm")
OURS = frozenset({*_OUR_PACKAGES, "stk"})

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
#: Names not allowed for the user's file: it would replace a module that others import.
_TAKEN = frozenset({*sys.stdlib_module_names, *OURS, "torch", "numpy"})


def is_module(text: str) -> bool:
    """Whether a text names a Python file, or a module in a package."""
    return is_file(text) or _DOTTED.fullmatch(text) is not None


def is_file(module: str) -> bool:
    """Whether this is the name of a Python file, and not the dotted name of a module."""
    return module.endswith(".py")


def locate(module: str, folders: Sequence[Path], code: Path = CODE) -> Path:
    """Find the file of a module: first the copy in a run's code, then the named file.

    folders   the folders that a file name may be relative to
    code      the folder of a run's code; default: the folder that contains this package
    Raises Unfit without one.
    """
    found = next((path for path in _candidates(module, folders, code) if path.is_file()), None)
    if found is None:
        looked = ", ".join(dict.fromkeys(str(folder.absolute()) for folder in folders))
        where = f", looked in {looked}" if not Path(module).expanduser().is_absolute() else ""
        what = "file" if is_file(module) else "module"
        package = module.partition(".")[0]
        hint = (
            f"install {package}, for example by pip install -e, or set PYTHONPATH to the folder that has it"
        )
        if is_file(module):
            hint = "`stk init` writes one, as in task: digits.py"
        raise Unfit([Problem(problem=f"there is no {what} {module}{where}", hint=hint)])
    if is_file(module) and found.stem in _TAKEN:
        problem = f"found the file name {found.name}, but Python or the toolkit has a module of that name"
        raise Unfit([Problem(problem=problem, hint="give it another name")])
    return found


def file_name(module: str, path: Path) -> str:
    """Return the absolute name of a file that the experiment stores; `path` is where it was found."""
    if Path(module).is_absolute():
        # Not the path: in a run's own code, this is the copy.
        return str(Path(module))
    normal = Path(os.path.normpath(path))
    # After a link, `..` is in another folder than the text says.
    return str(normal if normal.exists() and normal.samefile(path) else path)


def _candidates(module: str, folders: Sequence[Path], code: Path) -> Iterator[Path]:
    if is_file(module):
        path = Path(module).expanduser()
        yield code / PROJECT / path.name
        yield from ((folder / path).absolute() for folder in folders)
        yield path.absolute()
        return
    for root in (code / PROJECT, *folders, *map(Path, sys.path), *_installed(module)):
        inner = root.absolute() / PurePosixPath(*module.split("."))
        yield from (inner.with_name(f"{inner.name}.py"), inner / "__init__.py")


def _installed(module: str) -> Iterator[Path]:
    """Yield the folders where the module's package is installed, without importing it."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder).parent


def import_faults(module: str, path: Path, imports: Mapping[str, int]) -> Iterator[Problem]:
    """Find imports that fail: relative ones of a file, and names that the toolkit's packages do not have."""
    for name, line in imports.items():
        package, _, inner = name.partition(".")
        if not package and is_file(module):
            problem = f"imports {name} from its package, but a file has none"
            packages = _packages(path)
            hint = as_module(path, packages[-1]) if packages else "import it without the dot"
            yield Problem(problem=problem, hint=hint, line=line)
        elif package in _OUR_PACKAGES and not _has(package, inner.partition(".")[0]):
            problem = f"imports {name}, but {package} is a package of slurm-toolkit"
            yield Problem(problem=problem, hint=f"give your {package} another name", line=line)


def _has(package: str, name: str) -> bool:
    return (CODE / package / name).is_dir() or (CODE / package / f"{name}.py").is_file()


def package_around(path: Path, names: Iterable[str]) -> Path | None:
    """The folder of the package that a task's file is in and imports from; None if it imports others.

    names   top-level names that the file imports, or that files beside it import
    """
    packages = _packages(path)
    for name in names:
        is_beside = path.with_name(f"{name}.py").exists() or path.with_name(name).exists()
        named = [] if is_beside or name in OURS else [each for each in path.parents if each.name == name]
        spec = importlib.util.find_spec(name) if named else None
        places = {Path(place).resolve() for place in (spec and spec.submodule_search_locations) or ()}
        for folder in named:
            if folder.resolve() in places or (spec is None and folder in packages[-1:]):
                return folder
    return None


def _packages(path: Path) -> list[Path]:
    """The folders of the packages around a file, from the innermost."""
    return list(takewhile(lambda folder: (folder / "__init__.py").is_file(), path.parents))


def as_module(path: Path, package: Path) -> str:
    """What to write instead of a file in a package."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    if unfit := [part for part in parts if not part.isidentifier()]:
        return f"name it as a module: rename {unfit[0]}, which Python cannot import"
    return f"name it as a module: task: {'.'.join(parts)}, with {package.parent} in PYTHONPATH, or installed"


def root_of(module: str, path: Path) -> Path:
    """The folder that the imports of a module's file are relative to."""
    if is_file(module):
        return path.parent
    depth = module.count(".") + (2 if path.name == "__init__.py" else 1)
    return path.parents[depth - 1]
