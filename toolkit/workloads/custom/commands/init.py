"""`stk init [FOLDER] [--from EXPERIMENT]`."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import toolkit
from toolkit.command import Command, Host
from toolkit.errors import UserError
from toolkit.files import write_atomic

_DISTRIBUTION = "slurm-toolkit"
#: The schema of experiment files.
_SCHEMA = "stk.schema.json"
_NEW_PROJECT = ("digits.py", "digits.yaml", "test_digits.py", ".gitignore")
#: The path of an include, which may contain a reference.
_INCLUDE = re.compile(r"\$\{\s*from_file\s*:((?:[^${}]|\$\{[^{}]*\})*)\}")
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_EXPERIMENT = re.compile(r"^task:", re.MULTILINE)
#: A line for editors. It names a file that is not copied.
_SCHEMA_LINE = re.compile(r"\A# yaml-language-server:.*\n")
_DESCRIPTION = """\
Write a working project into a folder: digits.py with a model, data and a step, an experiment file, a test.
It learns the handwritten digits of scikit-learn in seconds. Replace model and data with your own.
The experiment file names a schema in the same folder, which editors use for completion (see stk schema).
With --from, write one of the experiment files that come with the package, and the files that it includes.
Existing files are not overwritten.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", nargs="?", help="default: digits, or EXPERIMENT")
    parser.add_argument(
        "--from",
        dest="starter",
        metavar="EXPERIMENT",
        help="an experiment file of the package, such as quickstart; its data are not part of it",
    )
    parser.add_argument("--list", action="store_true", help="show the experiment files for --from")


INIT = Command(
    summary="write a small project that works",
    description=_DESCRIPTION,
    add_arguments=_add_arguments,
    run="toolkit.workloads.custom.commands.init:init",
)


def init(arguments: Namespace, host: Host) -> int:
    """Write the files of a new project. Raises UserError if one of them already exists."""
    if arguments.list:
        print("\n".join(starters()))
        return 0
    name = arguments.starter
    files = new_files() if name is None else files_of(name)
    folder = Path(arguments.folder or ("digits" if name is None else Path(name).name))
    _write(folder, files)
    next_line = "train   cd {0} && stk run digits.yaml" if name is None else "look    cd {0} && stk plan {1}"
    print(f"wrote   {', '.join(files)}\nfolder  {folder}")
    print(next_line.format(shlex.quote(str(folder)), next(iter(files))))
    return 0


def _write(folder: Path, files: Mapping[str, str]) -> None:
    present = [name for name in files if (folder / name).exists()]
    if present:
        raise UserError(
            f"{folder} has {', '.join(present)} already: nothing was written. Name another folder"
        )
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / name, text)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror or error}") from error


def starters() -> dict[str, Path]:
    """The experiment files by name, such as `spelling/sed_words`. Raises UserError if none are installed."""
    root = _root()
    files = sorted(root.rglob("*.yaml"), key=lambda file: (len(file.parts), file))
    return {
        str(file.relative_to(root).with_suffix("")): file
        for file in files
        if _EXPERIMENT.search(file.read_text(encoding="utf-8"))
    }


def files_of(name: str) -> dict[str, str]:
    """Return the text of an experiment file and of all files that it includes, by path in a new folder.

    Raises UserError if no experiment file has that name.
    """
    known = starters()
    if name not in known:
        raise UserError(f"there is no experiment file {name}, only {', '.join(known)}")
    text = _text(known[name])
    return {known[name].name: text, **dict(_included(text, _root()))}


def _included(text: str, root: Path) -> Iterator[tuple[str, str]]:
    for path in _INCLUDE.findall(text):
        # The value of a reference is known only when the experiment is read, so take all matching files.
        for file in sorted(root.glob(_REFERENCE.sub("*", path.strip()))):
            inner = _text(file)
            yield str(file.relative_to(root)), inner
            yield from _included(inner, root)


def _text(file: Path) -> str:
    return _SCHEMA_LINE.sub("", file.read_text(encoding="utf-8"))


def new_files() -> dict[str, str]:
    """Return the files of a new project, by name: an example, and the schema that its experiment names."""
    from toolkit.sweeps.json_schema import file_schema  # imports all sections

    folder = _shipped("examples/digits", "digits.py")
    files = {name: _text(folder / name) for name in _NEW_PROJECT}
    files["digits.yaml"] = f"# yaml-language-server: $schema={_SCHEMA}\n{files['digits.yaml']}"
    return {**files, _SCHEMA: f"{file_schema([folder / 'digits.yaml'])}\n"}


def _root() -> Path:
    return _shipped("configs", _SCHEMA)


def _shipped(folder: str, mark: str) -> Path:
    """Return a folder of the package: in a checkout of the repository, else where a wheel has installed it.

    mark  a file in it, which distinguishes it from other folders of that name
    """
    beside = Path(toolkit.__file__).parents[1] / folder
    if (beside / mark).is_file():
        return beside
    try:
        files = distribution(_DISTRIBUTION).files or ()
    except PackageNotFoundError:
        files = ()
    for file in files:
        if str(file).endswith(f"share/{_DISTRIBUTION}/{folder}/{mark}"):
            return Path(str(file.locate())).resolve().parent
    raise UserError(f"the files of {_DISTRIBUTION} in {folder} are not installed here")
