"""`stk init [FOLDER]`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from toolkit.command import Command, Host
from toolkit.errors import UserError
from toolkit.files import write_atomic
from toolkit.workloads.custom.functions.project.new_files import new_files

_DESCRIPTION = """\
Write a project that works into a folder: digits.py with a model, data and a step, an experiment file, a test.
It learns handwritten digits that scikit-learn ships, in seconds. Put your own model and data in their places.
The experiment names a schema beside it, by which an editor completes and checks it (stk schema).
Files that are there are not written over.
"""


def _add_folder(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="digits", help="default: digits")


INIT = Command(
    summary="write a project that works, to begin with",
    description=_DESCRIPTION,
    add_arguments=_add_folder,
    run="toolkit.workloads.custom.commands.init:init",
)


def init(arguments: Namespace, host: Host) -> int:
    """Write the files of a new project. Raises UserError where one of them is there."""
    folder, files = Path(arguments.folder), new_files()
    present = [name for name in files if (folder / name).exists()]
    if present:
        raise UserError(
            f"{folder} has {', '.join(present)} already: nothing was written. Name another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_atomic(folder / name, text)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror or error}") from error
    print(f"wrote   {', '.join(files)}\nfolder  {folder}\ntrain   cd {folder} && stk run digits.yaml")
    return 0
