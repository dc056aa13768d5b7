"""Prepared sets: folders that are built once per content and settings, then mapped into memory.

<prepared_dir>/<name>-<key>/     complete or absent, never half
    samples.sqlite               for people and queries; runs add their results
    *.bin                        flat arrays, for training
    meta.json                    counts, settings, fingerprint, size and checksum of every file
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from toolkit.data.prepared.build_once import publish_once
from toolkit.data.prepared.columns import Column
from toolkit.data.prepared.database import DATABASE
from toolkit.data.prepared.manifest import PREPARE_AGAIN, read_manifest
from toolkit.data.prepared.results import holds_results
from toolkit.errors import DataError
from toolkit.files import crc32
from toolkit.workload import Progress, silent

#: Seconds without a sign of life of the process that builds a set, after which others stop waiting.
_LOCK_TIMEOUT_S = 3600.0

#: The samples of one split.
S = TypeVar("S", bound=Sized)


@dataclass(frozen=True, kw_only=True)
class PreparedFolder(Generic[S]):
    """An opened prepared set. A workload's subclass describes its content.

    VERSION  version of the format: increased whenever the same input would give other files
    COLUMNS  the flat arrays that every set has
    FACTS    keys of the manifest that are reported to programs
    meta     the manifest
    built    whether the call that returned this built the set; False if it existed
    """

    VERSION: ClassVar[int]
    COLUMNS: ClassVar[tuple[Column, ...]] = ()
    FACTS: ClassVar[tuple[str, ...]] = ("splits",)
    path: Path
    meta: Mapping[str, Any]
    built: bool = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a set and check that its files exist in full size. Raises DataError."""
        # Runs add their results to the database.
        meta = read_manifest(path, cls.VERSION, growing=DATABASE)
        if missing := [each.file for each in cls.COLUMNS if each.file not in meta["files"]]:
            raise DataError(f"{path} was made without {', '.join(missing)}; {PREPARE_AGAIN}")
        return cls(path=path, meta=meta)

    @classmethod
    def open_or_build(
        cls, path: Path, fingerprint: str, fill: Callable[[Path], None], progress: Progress | None = None
    ) -> Self:
        """Open the set of this content. If it does not exist, `fill` first writes it into an empty folder.

        Any number of processes may call this at once: one builds, the others wait while it is alive, and
        report that as progress.
        Raises DataError, with advice; then nothing is left behind.
        """
        waiting = partial(progress or silent, "waiting for data that another process prepares", 0, None)
        built = publish_once(path, fill, lambda: cls._holds(path, fingerprint), _LOCK_TIMEOUT_S, waiting)
        return replace(cls.open(path), built=built)

    @classmethod
    def _holds(cls, path: Path, fingerprint: str) -> bool:
        """Whether the set exists, is complete, and was made from this content."""
        try:
            return cls.open(path).fingerprint == fingerprint
        except DataError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and not isinstance(cause, NotADirectoryError):
                # A private set of another user, or a disk that does not answer, is not a damaged set:
                # building would remove it.
                raise
            return False

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the sources and of every setting that changes the content."""
        return str(self.meta["fingerprint"])

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    @property
    def splits(self) -> Mapping[str, int]:
        """Samples of each split."""
        return dict(self.meta["splits"])

    @property
    def state(self) -> str:
        """Whether the call that returned this built the set, for people."""
        return "prepared" if self.built else "was prepared before"

    def description(self) -> str:
        """Describe the set, for people: one line with the counts, and one for each detail."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        return "\n".join([f"{counts}{self._contents()}; {self.path}", *self._details()])

    def summary(self) -> str:
        """Return the state and the description."""
        return f"{self.state}: {self.description()}"

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON, for programs."""
        facts = {name: self.meta[name] for name in self.FACTS}
        return {"path": str(self.path), "built": self.built, "fingerprint": self.fingerprint, **facts}

    def split(self, name: str) -> S:
        """The samples of a split, in the order of the sources. Raises DataError for an unknown split."""
        if name not in self.splits:
            raise DataError(f"{self.path} has no split {name!r}, only {', '.join(self.splits)}")
        samples = self._samples(name)
        if len(samples) != self.splits[name]:
            raise DataError(
                f"{self.path}: {name} has {len(samples):,} samples, expected {self.splits[name]:,} as in its "
                f"manifest. The code of its task counts wrongly, or files are damaged: {PREPARE_AGAIN}"
            )
        return samples

    def verify(self) -> None:
        """Compare every file with its checksum. Raises DataError for the first that differs.

        A database that runs have added results to is checked by SQLite itself instead.
        """
        for name, expected in self.meta["files"].items():
            try:
                found = crc32(self.path / name)
            except OSError as error:
                raise DataError(f"{self.path / name} cannot be read ({error}); {PREPARE_AGAIN}") from error
            if found != expected["crc32"] and not (name == DATABASE and holds_results(self.path)):
                raise DataError(f"{self.path / name} is damaged: its checksum differs; {PREPARE_AGAIN}")

    def _samples(self, split: str) -> S:
        """The samples of a split that exists."""
        raise NotImplementedError

    def _contents(self) -> str:
        """Return the text after the counts in the first line of the summary."""
        return ""

    def _details(self) -> Iterable[str]:
        """Further lines of the summary."""
        return ()
