"""The input of a caller: an experiment file, the words of a command, or a function."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Rational, Real
from pathlib import Path
from typing import Any

from slurm.commands.command_line import file_of, file_of_command
from toolkit.errors import UserError

#: The commands' choices of --cluster.
_CLUSTERS = ("auto", "slurm", "local")
_SHOWN = '{"optimizer.lr": 3e-4}'


def file_and_overrides(
    what: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    overrides: Mapping[str, Any] | None,
    given: Mapping[str, bool] | None = None,
) -> tuple[Path, list[str]]:
    """Return the experiment file and the overrides, as the commands take them. Raises UserError.

    what    a file; a list of words; or a function, called with args and kwargs
    given   options of the public function, and whether each was given
    """
    if callable(what):
        return _of_function(what, args, kwargs, given or {}), as_words(overrides)
    if kwargs:
        raise UserError(
            f"there is no option {next(iter(kwargs))!r}: keys of an experiment are set by a dictionary, "
            f"{_SHOWN}"
        )
    if (found := len(args) + (overrides is not None)) > 1:
        raise UserError(f"found {found} values after {what}, expected one dictionary of keys: {_SHOWN}")
    words = as_words(args[0] if args else overrides)
    if isinstance(what, str | os.PathLike):
        return Path(what), words
    if isinstance(what, list | tuple) and what and all(isinstance(each, str) for each in what):
        return file_of_command(what), words
    raise UserError(
        f"found {what!r:.100}, expected the name of an experiment file, a function, or a command as a "
        'list of words, ["python", "train.py"]'
    )


def _of_function(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], given: Mapping[str, bool]
) -> Path:
    from toolkit.registry import first_code, load_code

    try:
        parameters: Iterable[str] = inspect.signature(function).parameters
    except (ValueError, TypeError):
        parameters = ()
    for name, is_given in given.items():
        if is_given and name in parameters:
            raise UserError(
                f"{name} is a parameter of {function.__qualname__} and an option of this call: rename "
                "the parameter"
            )
    if not (code := first_code("of_function")):
        raise UserError("no installed workload calls a function: install slurm-toolkit again")
    return file_of(load_code(code)(function, args, kwargs))


def as_words(overrides: Any) -> list[str]:
    """Return the entries of a dictionary, each as `key=value`. Raises UserError for an unfit one."""
    return [f"{key}={value_text(key, value)}" for key, value in items(overrides)]


def items(overrides: Any) -> Iterable[tuple[str, Any]]:
    """Return the items of a dictionary; none for None. Raises UserError for anything else."""
    if overrides is None:
        return ()
    if not isinstance(overrides, Mapping):
        raise UserError(f"found {overrides!r:.100}, expected a dictionary of keys to set: {_SHOWN}")
    for key in overrides:
        if not isinstance(key, str) or not key or "=" in key:
            raise UserError(
                f"found the key {key!r:.100}, expected the name of a key of the experiment: {_SHOWN}"
            )
    return overrides.items()


def value_text(key: str, value: Any) -> str:
    """Return a value as JSON, which is valid YAML. Raises UserError if JSON cannot hold it."""
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except Exception:
        # Arrays and tensors raise errors of many kinds.
        raise UserError(
            f"{key}: found {_shown(value)}, a {type(value).__name__}; expected a number, a text, True, "
            "False, None, or a list or dictionary of these"
        ) from None


def listed(key: str, value: Any) -> Any:
    """Return a range, array or tensor as a list; other values as they are. Raises UserError."""
    is_list = isinstance(value, range) or hasattr(type(value), "tolist")
    return json.loads(value_text(key, value)) if is_list else value


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.100}"
    except ValueError:
        return "a whole number that is too large to be written"


def _plain(value: Any) -> Any:
    """Return a number, range, array or tensor as numbers and lists of Python, and a path as a text.

    Raises TypeError for other values.
    """
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    if isinstance(value, range):
        return list(value)
    return value.tolist() if hasattr(type(value), "tolist") else os.fspath(value)


def check_cluster(cluster: str) -> None:
    """Raise UserError for an unknown cluster."""
    if cluster not in _CLUSTERS:
        raise UserError(f"cluster is {cluster!r}: expected one of {', '.join(_CLUSTERS)}")


def warn(lines: Iterable[str], *, depth: int = 1) -> None:
    """Give each line once as a Python warning, with the position of the public function's caller.

    depth   number of calls from the public function to this one: 1 if it calls this directly
    """
    for line in dict.fromkeys(lines):
        warnings.warn(line, stacklevel=depth + 2)
