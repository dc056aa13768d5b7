"""An experiment from a function and its arguments: a command that calls the function by its name.

Arguments and results are stored as JSON and not pickled. Reading a pickle can execute code, and often fails
with another version of the pickled class. A run must be able to continue years later, and its result must
stay readable.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from toolkit.errors import UserError
from toolkit.workloads.custom.calling.plain_values import NotPlain, plain
from toolkit.workloads.custom.command.words import CALL, RUN_DIR
from toolkit.workloads.custom.command.words import experiment_of as experiment_of_words

#: Limit for the arguments, in characters: Linux limits one argument of a command to 128 KiB.
_LIMIT = 100_000
_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def experiment_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the experiment of a call, as in an experiment file: named after the function.

    Raises UserError if a job cannot import the function, if the arguments do not fit its signature, or if
    JSON cannot hold them.
    """
    module, name = _importable(function)
    _check_fit(function, name, args, kwargs)
    places = _places(module)
    request = {"function": f"{module.__name__}:{name}", **places.pop("request"), **_as_json(args, kwargs)}
    # The `$` of a text that is an argument would otherwise begin a reference, which the command fills in.
    text = json.dumps(request).replace(RUN_DIR, RUN_DIR.replace("$", r"\u0024"))
    if len(text) > _LIMIT:
        raise UserError(
            f"the arguments of {name} are {len(text):,} characters of JSON, and at most {_LIMIT:,} are "
            "allowed: write them to a file and give its path"
        )
    tree = experiment_of_words([sys.executable, "-P", "-m", CALL, text])
    tree["name"] = experiment_of_words([name])["name"]
    tree["task"]["folder"] = places["folder"]
    return {**tree, "code": places["code"]}


def _importable(function: Any) -> tuple[ModuleType, str]:
    """Return the module that defines a function, and its name there. Raises UserError if not importable."""
    name, home = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    if not name or not home:
        raise _refused(f"{function!r:.100}", "has no name", "define a function in a module")
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(is_kind(function) for is_kind in kinds):
        raise UserError(f"{name} is async or a generator: a job calls a function that returns its result")
    if "<lambda>" in name:
        raise _refused("a lambda", f"of {home} has no name", "define a function with `def` in a module")
    if "<locals>" in name:
        outer = name.partition(".<locals>")[0]
        raise _refused(name, f"is defined within {outer}", f"define it at the top level of {home}")
    if home == "__main__":
        raise _refused(
            name,
            "is defined in __main__, that is in this notebook, session or script",
            f"write it into a file, such as work.py, and `from work import {name}`",
        )
    module = sys.modules.get(home)
    if module is None or _found(home) is None:
        raise _refused(name, f"is of {home}, which has no file", "write it into a file")
    try:
        is_it = attrgetter(name)(module) == function
    except AttributeError:
        is_it = False
    if not is_it:
        raise _refused(
            name, f"is not the object named {home}.{name}", "give the function itself, by its name"
        )
    return module, name


def _found(home: str) -> Any:
    try:
        return importlib.util.find_spec(home)
    except (ImportError, ValueError):
        return None


def _refused(what: str, problem: str, hint: str) -> UserError:
    return UserError(f"{what} {problem}, so a job cannot import it: {hint}")


def _check_fit(function: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        # Some functions written in C have no signature.
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UserError(f"{name}{signature}: {error}") from None


def _as_json(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        listed = [plain(each, f"argument {number}") for number, each in enumerate(args, start=1)]
        return {
            "args": listed,
            "kwargs": {name: plain(each, f"argument {name}") for name, each in kwargs.items()},
        }
    except NotPlain as error:
        raise UserError(
            f"{error}, which is not allowed: arguments are written as JSON. Give numbers, texts, "
            "lists and dictionaries of these; write anything else to a file and give its path"
        ) from None


def _places(module: ModuleType) -> dict[str, Any]:
    """Return the function's folder, its kept code, and the folder from which its module is imported.

    Relative file names refer to the caller's working folder, or to its copy if the code contains it.
    """
    here, root = Path.cwd().resolve(), _root(module)
    if root is None:
        return {"folder": str(here), "code": [], "request": {}}
    # The module counts as code even if git does not track it yet.
    file = str(Path(module.__file__ or "").resolve())
    if root.is_relative_to(here):
        request = {"path": str(root.relative_to(here))}
        return {"folder": str(here), "code": [str(here), file], "request": request}
    at = here.relative_to(root) if here.is_relative_to(root) else here
    return {"folder": str(root), "code": [str(root), file], "request": {"path": ".", "at": str(at)}}


def _root(module: ModuleType) -> Path | None:
    """The folder from which a module is imported; None for an installed module, which every host has."""
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    if any(path.is_relative_to(Path(sysconfig.get_path(name)).resolve()) for name in _INSTALLED):
        return None
    return path.parents[module.__name__.count(".") + (path.name == "__init__.py")]
