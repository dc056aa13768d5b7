"""The names of the artifacts that a workload leaves in its runs, one line for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True)
class ArtifactFiles:
    """The paths of a run's artifacts. A subclass names them with `artifact` and `artifact_of`."""

    run: RunDir


def artifact(name: str) -> Path:
    """A property: the file or folder of this name."""
    return cast(Path, property(lambda files: files.run.artifact(name)))


def artifact_of(end: str) -> Callable[[Any, str], Path]:
    """A method: the file whose name begins with its argument, such as a split, and ends so."""
    return lambda files, name: files.run.artifact(f"{name}{end}")
