"""The files that a section of an experiment names: are they there?"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from toolkit.config.options import is_identity, is_path
from toolkit.errors import DataError

#: What a folder of texts holds, as a benchmark does.
_PAIR = ("corrupt.txt", "correct.txt")
#: Keys that name texts: a file, or a folder with such a pair.
_TEXTS = ("path", "datasets", "validation", "test")


def check_named_files(section: Any, key: str = "data", besides: Container[str] = ()) -> None:
    """Raise DataError with every file of texts, noise and tokenizers that is named but cannot be read.

    key      of the section
    besides  keys of the section whose files are not needed
    """
    missing = [f"{where}: {problem}" for where, problem in _missing(section, key, besides)]
    if missing:
        what = "A file that the experiment names is" if len(missing) == 1 else "Files that it names are"
        raise DataError("\n".join([f"{what} not there as named:", *(f"  - {line}" for line in missing)]))


def _missing(section: Any, key: str, besides: Container[str] = ()) -> Iterator[tuple[str, str]]:
    for each in fields(section):
        if each.name in besides:
            continue
        value, where = getattr(section, each.name), f"{key}.{each.name}"
        # What changes no result is written, not read: where prepared sets are kept.
        if is_path(each) and is_identity(each):
            yield from _missing_paths(value, where, each.name in _TEXTS)
        elif is_dataclass(value):
            yield from _missing(value, where)
        elif isinstance(value, tuple):
            for place, inner in enumerate(value):
                if is_dataclass(inner):
                    yield from _missing(inner, f"{where}.{place}")


def _missing_paths(value: Any, where: str, may_be_folder: bool) -> Iterator[tuple[str, str]]:
    if isinstance(value, tuple):
        for place, name in enumerate(value):
            yield from _missing_paths(name, f"{where}.{place}", may_be_folder)
    elif value is not None and (problem := _problem(Path(value).expanduser(), may_be_folder)):
        yield where, problem


def _problem(path: Path, may_be_folder: bool) -> str:
    """What is wrong with a file, or with a folder of texts; empty where nothing is."""
    if not path.exists():
        return f"{path} does not exist"
    if path.is_dir():
        absent = [name for name in _PAIR if not (path / name).is_file()]
        if not may_be_folder:
            return f"{path} is a folder, expected a file"
        return f"{path} is a folder without {' and '.join(absent)}" if absent else ""
    return "" if os.access(path, os.R_OK) else f"{path} may not be read by this user"
