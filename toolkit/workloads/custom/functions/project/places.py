"""Places of the user's code: as an experiment names it, and in the folder of a run."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from toolkit.workloads.custom.functions.reading.problems import Problem, Unfit

#: The folder of the user's files in that of a run's code.
PROJECT = "project"
#: The folder of this very code: that of a run's code, or that of an installation.
_CODE = Path(__file__).resolve().parents[5]

#: The packages of this project, and all its modules, which may lie beside the user's file.
_OUR_PACKAGES = ("toolkit", "slurm")
OURS = frozenset({*_OUR_PACKAGES, "stk"})

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
#: A file of such a name would replace a module that everything else imports.
_TAKEN = frozenset({*sys.stdlib_module_names, *OURS, "torch", "numpy"})


def names_code(text: str) -> bool:
    """Whether a text names a Python file or a module in a package, or a class in one of them."""
    module, colon, class_name = text.rpartition(":") if ":" in text else (text, "", "")
    if colon and not class_name.isidentifier():
        return False
    return is_file(module) or _DOTTED.fullmatch(module) is not None


def is_file(module: str) -> bool:
    """Whether a Python file is named, and not a module by its dotted name."""
    return module.endswith(".py")


def locate(module: str, folders: Sequence[Path], code: Path = _CODE) -> Path:
    """Find the file of a module: a run's own copy where this is a run's code, else as it is named.

    folders   what the name of a file may be relative to
    code      the folder of a run's code; by default the one that this very code is in
    Raises Unfit.
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
        problem = f"found the file name {found.name}, which is that of a module of Python or of the toolkit"
        raise Unfit([Problem(problem=problem, hint="give it another name")])
    return found


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
    """Yield the folders where the package is installed. It is not imported."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder).parent


def import_faults(module: str, path: Path, imports: Mapping[str, int]) -> Iterator[Problem]:
    """What a module of a task imports in vain: from its package, as a file, or from a package of ours."""
    for name, line in imports.items():
        package, _, inner = name.partition(".")
        if not package and is_file(module):
            problem = f"imports {name} from its package, but a file has none"
            yield Problem(problem=problem, hint=_as_module(path), line=line)
        elif package in _OUR_PACKAGES and not _has(package, inner.partition(".")[0]):
            problem = f"imports {name}, but {package} is a package of slurm-toolkit"
            yield Problem(problem=problem, hint=f"give your {package} another name", line=line)


def _has(package: str, name: str) -> bool:
    return (_CODE / package / name).is_dir() or (_CODE / package / f"{name}.py").is_file()


def _as_module(path: Path) -> str:
    parts = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        parts.insert(0, folder.name)
    if len(parts) == 1:
        return "import it without the dot"
    return f"name it as a module: task: {'.'.join(parts)}, with {folder} in PYTHONPATH, or installed"


def root_of(module: str, path: Path) -> Path:
    """The folder that the imports of a module's file are relative to."""
    if is_file(module):
        return path.parent
    depth = module.count(".") + (2 if path.name == "__init__.py" else 1)
    return path.parents[depth - 1]
