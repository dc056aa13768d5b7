"""The files that a section of an experiment names: do they exist? Imports nothing slow."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from toolkit.config.fields import limits
from toolkit.errors import DataError
from toolkit.workload import Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Keys that may name a folder in place of a file, and the files that such a folder holds."""

    keys: Sequence[str] = ()
    files: Sequence[str] = ()


def missing_files(
    section: Any, key: str, besides: Container[str] = (), folders: Folders | None = None
) -> Iterator[Violation]:
    """Find every file that a section names and that cannot be read.

    key      of the section
    besides  keys of the section whose files are not needed
    """
    folders = folders or Folders()
    for each in fields(section):
        if each.name in besides:
            continue
        value, where = getattr(section, each.name), f"{key}.{each.name}"
        # A path that cannot change the result is written, not read, as the folder of prepared sets.
        if limits(each).path and limits(each).identity:
            yield from _missing_paths(value, where, folders.files if each.name in folders.keys else None)
        elif is_dataclass(value):
            yield from missing_files(value, where, (), folders)
        elif isinstance(value, tuple):
            for place, inner in enumerate(value):
                if is_dataclass(inner):
                    yield from missing_files(inner, f"{where}.{place}", (), folders)


def violation_of(key: str, check: Callable[..., object], *arguments: object) -> Iterator[Violation]:
    """Yield the error of a check, as a violation of a key."""
    try:
        check(*arguments)
    except DataError as error:
        yield Violation(key=tuple(key.split(".")), problem=str(error).removeprefix(f"{key}: "))


def _missing_paths(value: Any, where: str, in_folder: Sequence[str] | None) -> Iterator[Violation]:
    if isinstance(value, tuple):
        for place, name in enumerate(value):
            yield from _missing_paths(name, f"{where}.{place}", in_folder)
    elif value is not None and (problem := _problem(Path(value).expanduser(), in_folder)):
        yield Violation(key=tuple(where.split(".")), problem=problem)


def _problem(path: Path, in_folder: Sequence[str] | None) -> str:
    """Return the error of a file, or of a folder that may replace it; empty without an error."""
    if not path.exists():
        return f"{path} does not exist"
    if path.is_dir():
        if in_folder is None:
            return f"{path} is a folder, expected a file"
        absent = [name for name in in_folder if not (path / name).is_file()]
        return f"{path} is a folder without {' and '.join(absent)}" if absent else ""
    if not path.is_file():
        return f"{path} is a pipe or a device, expected a file"
    return "" if os.access(path, os.R_OK) else f"{path} may not be read by this user"
