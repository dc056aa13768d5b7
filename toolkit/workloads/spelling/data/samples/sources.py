"""The text files that a data section names, and the fingerprint of the set made from them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from toolkit.data.sources.file_digests import memory_of
from toolkit.data.sources.source_files import SourceFile, with_fingerprint
from toolkit.errors import DataError
from toolkit.system.output.amounts import counted
from toolkit.workload import Progress, silent
from toolkit.workloads.spelling.config.data import CORRECT, CORRUPT, SpellingTexts
from toolkit.workloads.spelling.data.samples import layout

#: Default share of a data set for validation.
VAL_SPLIT = 0.1
_RECORDS = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of texts, or a folder with texts and their targets or labels.

    split  None for a data set, which is divided into training and validation
    parts  the file, or the two files of the folder
    """

    path: Path
    split: str | None
    parts: tuple[SourceFile, ...]

    @classmethod
    def open(cls, name: str, split: str | None, progress: Progress, memory: Path) -> Source:
        """Hash a file, or the two files of a folder, unless `memory` has their hashes. Raises DataError."""
        path = Path(name).expanduser()
        parts = tuple(SourceFile.open(str(file), split, progress, memory) for file in files_of(path))
        return cls(path=path, split=split, parts=parts)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(part.path for part in self.parts)

    @property
    def sha256(self) -> str:
        """The hashes of its files, separated by spaces."""
        return " ".join(part.sha256 for part in self.parts)

    @property
    def has_records(self) -> bool:
        """Whether its lines are JSON objects."""
        return self.path.suffix.lower() in _RECORDS and not self.has_golds

    @property
    def has_golds(self) -> bool:
        """Whether a second file has targets or labels."""
        return len(self.files) > 1

    def seed(self, noise_seed: int) -> int:
        """Return the seed of its noise. It depends on the content, but not on other data sets."""
        digest = hashlib.sha256(f"{noise_seed} {self.sha256}".encode()).digest()
        return int.from_bytes(digest[:8], "little")


def files_of(path: Path) -> tuple[Path, ...]:
    """Return a file itself, or the two files of a folder."""
    return (path / CORRUPT, path / CORRECT) if path.is_dir() else (path,)


def different_counts(source: Source, counts: Sequence[str]) -> DataError:
    """Return the error of a folder whose files have these numbers of lines."""
    found = " and ".join(f"{file} {count}" for file, count in zip(source.files, counts, strict=True))
    return DataError(f"expected as many lines in both files, found in {found}; do they belong together?")


def find_sources(data: SpellingTexts, progress: Progress) -> tuple[Source, ...]:
    """Open the sources that a section names, data sets first. Raises DataError."""
    named: list[tuple[str | None, str]] = [(None, name) for name in data_sets(data)]
    named += [(split, name) for split in layout.SPLITS[1:] for name in getattr(data, split) or ()]
    return tuple(Source.open(name, split, progress, memory_of(data)) for split, name in named)


def data_sets(data: SpellingTexts) -> tuple[str, ...]:
    """Return the names of the data sets for training."""
    return (data.path,) if data.path is not None else data.datasets or ()


def validation_size(name: str, samples: int, wanted: float) -> int:
    """Return the number of samples for validation. Raises DataError unless both parts have some.

    name    of the data set, for messages
    wanted  a count of at least 1, or a share below 1
    """
    size = round(samples * wanted) if wanted < 1 else wanted
    if 1 <= size < samples and size == int(size):
        return int(size)
    raise DataError(
        f"the data set {name} has {counted(samples, 'sample')}, and data.val_splits (default 0.1) is "
        f"{wanted:g}: expected a count, or a share below 1, with at least one sample for validation and one "
        "for training"
    )


def describe(data: SpellingTexts, sources: Sequence[Source], base: str | None = None) -> dict[str, Any]:
    """Return everything that determines the contents of the prepared set, with its fingerprint (SHA-256).

    base  fingerprint of the set that the scored model was trained on; None for training data

    Raises DataError if a file cannot be read.
    """
    settings: dict[str, Any] = {
        "noise": _by_content(data.noise, memory_of(data)),
        "noise_seed": data.noise_seed,
        "max_length": data.max_length,
    }
    for name in layout.ENCODERS:
        settings[name] = _content(getattr(data, name), memory_of(data))
    if base is None:
        settings |= {
            "dataset_limits": data.dataset_limits,
            "val_splits": data.val_splits,
            "split_seed": data.split_seed,
        }
        # Sets with one draw keep the fingerprint that they had before this option existed.
        settings |= {"noise_draws": data.noise_draws} if data.noise_draws > 1 else {}
    description = {
        "version": layout.VERSION,
        "settings": settings,
        "sources": [
            # Earlier versions read clean texts as this one does, but not pairs and labels.
            {"split": source.split, "sha256": source.sha256}
            | ({"records": source.has_records} if source.has_records or source.has_golds else {})
            for source in sources
        ],
        "base": base,
    }
    return with_fingerprint(description)


def changed(data: SpellingTexts, sources: Sequence[Source], description: Mapping[str, Any]) -> str:
    """Return which files changed since `description` was made; empty if all have the same content.

    Raises DataError if a file cannot be read.
    """
    again = [Source.open(str(each.path), each.split, silent, memory_of(data)) for each in sources]
    found = [str(old.path) for old, new in zip(sources, again, strict=True) if new.sha256 != old.sha256]
    before, now = description["settings"], describe(data, sources, description["base"])["settings"]
    return ", ".join([*found, *(f"data.{key}" for key in before if now[key] != before[key])])


def _by_content(noise: Any, memory: Path) -> Any:
    """Return a noise as plain values, with the hash of a file of misspellings instead of its name."""
    if is_dataclass(noise):
        return {
            each.name: _content(value, memory) if each.name == "misspellings" else _by_content(value, memory)
            for each in fields(noise)
            for value in [getattr(noise, each.name)]
        }
    return [_by_content(inner, memory) for inner in noise] if isinstance(noise, tuple) else noise


def _content(name: str | None, memory: Path) -> str | None:
    """Return the hash of a file; None without one."""
    return None if name is None else SourceFile.open(name, None, silent, memory).sha256
