"""`stk init [FOLDER]`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from toolkit.command import Command, Host
from toolkit.errors import UserError
from toolkit.files import write_atomic
from toolkit.workloads.custom.functions.project.new_files import FILES

_DESCRIPTION = """\
Write a project that works into a folder: digits.py with a model, data and a step, an experiment file, a test.
It learns handwritten digits that scikit-learn ships, in seconds. Put your own model and data in their places.
Files that are there are not written over.
"""


def _add_folder(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="digits", help="default: digits")


INIT = Command(
    summary="write a small project that works",
    description=_DESCRIPTION,
    add_arguments=_add_folder,
    run="toolkit.workloads.custom.commands.init:init",
)


def init(arguments: Namespace, host: Host) -> int:
    """Write the files of a new project. Raises UserError where one of them is there."""
    folder = Path(arguments.folder)
    present = [name for name in FILES if (folder / name).exists()]
    if present:
        raise UserError(
            f"{folder} has {', '.join(present)} already: nothing was written. Name another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            write_atomic(folder / name, text)
    except OSError as error:
        raise UserError(f"cannot write into {folder}: {error.strerror or error}") from error
    print(f"wrote   {', '.join(FILES)}\nfolder  {folder}\ntrain   cd {folder} && stk run digits.yaml")
    return 0
