"""Data sections that name one file to cut into splits, or a file for each split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.workload import Violation, rule

SPLITS = ("train", "validation", "test")


def files_by_split(data: Any) -> dict[str | None, Path]:
    """The files of a data section by split; the key None is for the file that is cut into splits."""
    named = {split: getattr(data, split or "path") for split in (None, *SPLITS)}
    return {split: Path(name).expanduser() for split, name in named.items() if name is not None}


def key_of_split(split: str | None) -> str:
    """The config key of a file of `files_by_split`."""
    return f"data.{split or 'path'}"


@rule("data.path", "data.train", "data.validation", "data.test")
def one_file_or_splits(experiment: Any) -> Iterator[Violation]:
    """Either `path`, or `train` and `validation`, and `test` if there is one."""
    data = experiment.data
    given = [name for name in SPLITS if getattr(data, name) is not None]
    ways = "expected either path (one file, cut by splits), or train and validation, and test if there is one"
    if data.path is not None and given:
        yield Violation(key=("data",), problem=f"found path together with {' and '.join(given)}, {ways}")
    elif data.path is None and not given:
        yield Violation(key=("data",), problem=f"no file is given, {ways}")
    elif data.path is None:
        for name in ("train", "validation"):
            if name not in given:
                problem = f"is missing beside {' and '.join(given)}, {ways}"
                yield Violation(key=("data", name), problem=problem)
