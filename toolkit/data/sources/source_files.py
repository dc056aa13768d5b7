"""The source files of prepared data, and the folder of a prepared set."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from toolkit.data.sources.file_digests import file_sha256
from toolkit.errors import DataError
from toolkit.workload import Progress

#: The one split of a file that is only scored.
TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file; `split` is None if the file is cut into splits. `state` shows whether it changed."""

    path: Path
    split: str | None
    sha256: str
    state: tuple[int, int]

    @classmethod
    def open(cls, name: str, split: str | None, progress: Progress, memory: Path, **further: Any) -> Self:
        """Hash a file, unless its digest is remembered in `memory`, the folder of prepared sets.

        further  fields of a subclass
        Raises DataError.
        """
        path = Path(name).expanduser()
        try:
            state = file_state(path)
            sha256 = file_sha256(path, state[0], progress, memory)
        except OSError as error:
            raise cls.problem(path, error) from error
        source = cls(path=path, split=split, sha256=sha256, state=state, **further)
        source.check_unchanged()
        return source

    @staticmethod
    def problem(path: Path, error: OSError) -> DataError:
        """Return the error of a file that cannot be read."""
        return DataError(f"{path} cannot be read: {error.strerror or error}; is it the right file?")

    def check_unchanged(self) -> None:
        """Raise DataError if the file was written to since it was hashed."""
        if file_state(self.path) != self.state:
            raise DataError(f"{self.path} changed while it was read; start again when its writer is done")


class HasPath(Protocol):
    """A source of prepared data: a file, or a folder."""

    @property
    def path(self) -> Path: ...


def with_fingerprint(description: Mapping[str, Any]) -> dict[str, Any]:
    """Add its fingerprint (SHA-256) to the description of everything that decides a set's content."""
    text = json.dumps(description, sort_keys=True)
    return {**description, "fingerprint": hashlib.sha256(text.encode()).hexdigest()}


def set_place(
    prepared_dir: str, sources: Sequence[HasPath], description: Mapping[str, Any]
) -> tuple[Path, str]:
    """Folder and fingerprint of the prepared set with this description, from `with_fingerprint`.

    The folder's name is the name of the first source, for people, and the beginning of the fingerprint.
    """
    fingerprint = str(description["fingerprint"])
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", sources[0].path.stem).strip("._-")[:40]
    return Path(prepared_dir).expanduser() / f"{stem or 'data'}-{fingerprint[:16]}", fingerprint


def file_state(path: Path) -> tuple[int, int]:
    """Size and time of the last change; (-1, -1) for a file that does not exist. Raises OSError."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (-1, -1)
    return found.st_size, found.st_mtime_ns
