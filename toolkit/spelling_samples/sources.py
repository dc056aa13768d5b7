"""The files of texts that a data section names, and the name of what is made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from toolkit.config.kinds import SpellingTexts
from toolkit.data.sources import Progress, file_sha256, file_state
from toolkit.errors import DataError
from toolkit.spelling.benchmarks import CORRECT, CORRUPT
from toolkit.spelling_samples import layout

#: Validation drawn from the data sets, where nothing is said about it.
VAL_SPLIT = 0.1
_RECORDS = ".jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file of texts, or a folder with texts and what is right.

    split  None for a data set, from which training and validation are taken
    files  the file, or those of the folder; `states` tells whether they changed
    """

    path: Path
    split: str | None
    files: tuple[Path, ...]
    sha256: str
    states: tuple[tuple[int, int], ...]

    @classmethod
    def open(cls, name: str, split: str | None, progress: Progress) -> Source:
        """Hash a file, or those of a folder. Raises DataError."""
        path = Path(name).expanduser()
        files = (path / CORRUPT, path / CORRECT) if path.is_dir() else (path,)
        states = tuple(file_state(file) for file in files)
        hashes = [_hash(file, state[0], progress) for file, state in zip(files, states, strict=True)]
        return cls(path=path, split=split, files=files, sha256=" ".join(hashes), states=states)

    @property
    def has_records(self) -> bool:
        """Whether its lines are JSON objects."""
        return self.path.suffix == _RECORDS and not self.has_golds

    @property
    def has_golds(self) -> bool:
        """Whether a second file says what is right."""
        return len(self.files) > 1

    def seed(self, noise_seed: int) -> int:
        """Seed of its noise: of its content, so that other data sets beside it change nothing."""
        digest = hashlib.sha256(f"{noise_seed} {self.sha256}".encode()).digest()
        return int.from_bytes(digest[:8], "little")

    def check_unchanged(self) -> None:
        """Raise DataError if a file was written to since it was hashed."""
        for file, state in zip(self.files, self.states, strict=True):
            if file_state(file) != state:
                raise DataError(f"{file} changed while it was read; start again when its writer is done")


def find_sources(data: SpellingTexts, progress: Progress) -> tuple[Source, ...]:
    """Hash the files that a section names, data sets first. Raises DataError."""
    named: list[tuple[str | None, str]] = [(None, name) for name in data_sets(data)]
    named += [(split, name) for split in layout.SPLITS[1:] for name in getattr(data, split) or ()]
    return tuple(Source.open(name, split, progress) for split, name in named)


def data_sets(data: SpellingTexts) -> tuple[str, ...]:
    """What training is from."""
    return (data.path,) if data.path is not None else data.datasets or ()


def describe(data: SpellingTexts, sources: Sequence[Source], base: str | None) -> dict[str, Any]:
    """Everything that decides what the prepared set holds, and its fingerprint (SHA-256).

    base  fingerprint of the set that the scored model was trained on; None where there is none
    Raises DataError where a file cannot be read.
    """
    settings: dict[str, Any] = {
        "noise": _by_content(data.noise),
        "noise_seed": data.noise_seed,
        "max_length": data.max_length,
    }
    for name in ("tokenizer_path", "output_tokenizer_path", "dictionary"):
        settings[name] = _content(getattr(data, name))
    if base is None:
        settings |= {
            "dataset_limits": data.dataset_limits,
            "val_splits": data.val_splits,
            "split_seed": data.split_seed,
        }
    description = {
        "version": layout.VERSION,
        "settings": settings,
        "sources": [{"split": source.split, "sha256": source.sha256} for source in sources],
        "base": base,
    }
    fingerprint = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    return description | {"fingerprint": fingerprint}


def _by_content(noise: Any) -> Any:
    """A noise as plain values, with the hash of a file of misspellings in place of its name."""
    if is_dataclass(noise):
        return {
            each.name: _content(value) if each.name == "misspellings" else _by_content(value)
            for each in fields(noise)
            for value in [getattr(noise, each.name)]
        }
    return [_by_content(inner) for inner in noise] if isinstance(noise, tuple) else noise


def _content(name: str | None) -> str | None:
    """Hash of a file; None without one."""
    if name is None:
        return None
    path = Path(name).expanduser()
    return _hash(path, -1, lambda stage, done, total: None)


def _hash(path: Path, size: int, progress: Progress) -> str:
    try:
        return file_sha256(path, size, progress)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}; is it the right file?") from error
