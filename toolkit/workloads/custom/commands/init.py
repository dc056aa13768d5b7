"""`stk init [FOLDER] [--from EXPERIMENT]`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from toolkit.command import Command, Host
from toolkit.errors import UserError
from toolkit.files import write_atomic
from toolkit.workloads.custom.commands.starters import files_of, new_files, starters

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
    print(next_line.format(folder, next(iter(files))))
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
