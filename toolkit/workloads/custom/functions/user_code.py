"""Import the module with the three functions, or the class in it, and tell whether it can predict.

Imports no torch itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from toolkit.errors import UserError
from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.functions.project.places import CODE, PROJECT, is_file, locate, root_of
from toolkit.workloads.custom.functions.reading.problems import Unfit
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES, Functions, read_functions
from toolkit.workloads.custom.functions.sections.classes import FunctionsTask

PREDICT = "predict"


class UserCode:
    """The functions of a task section; the run's copy of them if this code is a run's copy.

    File names in them are relative to `task.folder`, which becomes the working folder of this process.

    path    the file that is imported
    shown   the file that messages name: the user's own file if it exists, because the user edits that

    code    folder of a run's code, if this code is not in it
    Raises UserError if they cannot be read or imported.
    """

    def __init__(self, task: FunctionsTask, code: Path | None = None) -> None:
        # Messages name files as the user does: relative to the working folder.
        shown = Path() if task.code_folder == Path.cwd() else task.code_folder
        if task.folder and os.path.isdir(task.folder):
            os.chdir(task.folder)
        self.path, self.functions = _read(task, code)
        root = root_of(task.module, self.path)
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
        theirs = shown / (task.module if is_file(task.module) else self.path.relative_to(root))
        self.shown = theirs if theirs.is_file() else self.path
        self._class_name = task.class_name
        self._module = _imported(task.module, self.path, self.shown)

    def place(self, function: str, error: Exception | None = None) -> str:
        """File and line of a function, or of the line in the file that raised its error, for messages."""
        line = 0 if error is None else line_of(error, self.path)
        return f"{self.shown}:{line or self.functions.lines.get(function, 1)}"

    def find(self, name: str) -> Any:
        """Return the object with a name in the module, or the class, or None."""
        return getattr(self._owner, name, None)

    def call(self, name: str, values: Mapping[str, Any], *given: Any) -> Any:
        """Return the result of a function for the values of its section; `given` are its first arguments.

        `data` and `prepare` have one section: values that only the other one takes are left out.
        """
        known = {each.name: each for each in getattr(self.functions, name) or ()}
        other = {"data": self.functions.prepare, "prepare": self.functions.data}.get(name)
        left_out = {each.name for each in other or ()} - set(known)
        arguments = {
            key: known[key].given(value) if key in known else value
            for key, value in values.items()
            if key not in left_out
        }
        return self.find(name)(*given, **arguments)

    @cached_property
    def _owner(self) -> Any:
        """The module, or an object of the user's class, made at its first use: it may read much data."""
        if self._class_name is None:
            return self._module
        try:
            return getattr(self._module, self._class_name)()
        except (Exception, SystemExit) as error:
            what = f"{self.shown}:{line_of(error, self.path)}: {self._class_name}() fails"
            raise UserError(f"{what} ({type(error).__name__}: {error})") from error


def _read(task: FunctionsTask, code: Path | None) -> tuple[Path, Functions]:
    """Return the file of a task section and the functions in it. Raises UserError."""
    code = code or CODE
    try:
        path = locate(task.module, [task.code_folder], code)
        functions = read_functions(path, task.class_name)
    except (Unfit, OSError) as error:
        raise UserError(f"the task {task.module} cannot be used: {error}") from error
    own = code / PROJECT
    if own.is_dir() and RunDir(code.parent).config.exists() and not path.is_relative_to(own):
        # The named file may have been edited since.
        raise UserError(
            f"the run's copy of {task.module} is gone from {own}: restore it, or use today's code (continue "
            "with --new-code, or, for a finished run, remove code/)"
        )
    return path, functions


def prediction_fault(experiment: Any, folder: Path) -> str:
    """Return the reason why a run cannot predict; empty if its file has a function `predict`."""
    try:
        path, functions = _read(experiment.task, RunDir(folder).code)
    except UserError as error:
        return str(error)
    return "" if functions.may_have(PREDICT) else lacks_predict(path)


def lacks_predict(path: Path) -> str:
    """Return the message for a file without the function `predict`."""
    return (
        f"{path} has no function {PREDICT}: add it to your file, such as {EXAMPLES[PREDICT]!r}, and train "
        "again; a run keeps the file that it began with"
    )


@cache
def _imported(module: str, path: Path, shown: Path) -> ModuleType:
    try:
        return _of_file(path) if is_file(module) else importlib.import_module(module)
    except (Exception, SystemExit) as error:
        line = line_of(error, path)
        raise UserError(f"{shown}:{line}: cannot be imported ({type(error).__name__}: {error})") from error


def line_of(error: BaseException, path: Path) -> int:
    """Return the innermost line of a file in the traceback of an error; 0 if the file is not in it."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == str(path) else line
        trace = trace.tb_next
    return line


def _of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered before it is executed, so that its classes can be pickled, and its imports can import it.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
