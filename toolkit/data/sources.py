"""The files that a data section names, and the fingerprint of what would be made from them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from toolkit.config.kinds import TextTable
from toolkit.data.encoders import tokenizer_description
from toolkit.data.encoding import check_encoding
from toolkit.data.table import Format, check_regular, open_problem
from toolkit.errors import DataError

#: Told of every stretch of work: stage, how much is done, how much there is (None: not known yet).
Progress = Callable[[str, int, int | None], None]

#: The split that labels and vocabulary come from.
TRAIN = "train"
#: The one split of a file that is only scored.
TEST = "test"

_SPLIT_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
_BLOCK = 1 << 20
#: Settings that decide what is made, besides those of the tokenizer, the splits and each file.
_SETTINGS = (
    "encoding", "columns", "text_column", "label_column", "labels", "unknown_labels", "max_tokens", "fold",
)  # fmt: skip


class HasPath(Protocol):
    """A file that prepared data are made of."""

    @property
    def path(self) -> Path: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file; `split` is None where the file is cut into several. `state` tells whether it changed."""

    path: Path
    split: str | None
    format: Format
    sha256: str
    state: tuple[int, int]

    def check_unchanged(self) -> None:
        """Raise DataError if the file was written to since it was hashed."""
        if file_state(self.path) != self.state:
            raise DataError(f"{self.path} changed while it was read; start again when its writer is done")


def find_sources(data: TextTable, progress: Progress) -> tuple[Source, ...]:
    """Check what the section says about files and splits, and hash the files. Raises DataError."""
    _check_settings(data)
    given = {"train": data.train, "validation": data.validation, "test": data.test}
    named = {split: name for split, name in given.items() if name is not None}
    if data.path is not None:
        if named:
            others = ", ".join(f"data.{split}" for split in named)
            raise DataError(f"data.path is set, and so is {others}; keep either the one or the other")
        return (_source(data.path, None, data, progress),)
    missing = [f"data.{split}" for split in ("train", "validation") if split not in named]
    if missing:
        raise DataError(
            f"{' and '.join(missing)} missing: set data.path to a file that is cut into splits, "
            "or data.train and data.validation (and data.test) to a file each"
        )
    return tuple(_source(name, split, data, progress) for split, name in named.items())


def one_source(data: TextTable, split: str, progress: Progress) -> Source:
    """Check the section and hash its one file, `data.path`, all of which is one split. Raises DataError."""
    _check_settings(data)
    assert data.path is not None
    return _source(data.path, split, data, progress)


def split_names(data: TextTable, sources: Sequence[Source]) -> tuple[str, ...]:
    """The splits in their order."""
    return tuple(data.splits if sources[0].split is None else (str(source.split) for source in sources))


def describe(data: TextTable, sources: Sequence[Source], version: int, **further: Any) -> dict[str, Any]:
    """Everything that decides what the prepared set holds, and its fingerprint (SHA-256).

    further  what else decides it, besides the section and the sources
    """
    settings: dict[str, Any] = {name: getattr(data, name) for name in _SETTINGS} | further
    settings |= tokenizer_description(data)
    if sources[0].split is None:
        # As pairs: the order of the splits decides which samples they get.
        settings |= {
            "splits": [[name, float(share)] for name, share in data.splits.items()],
            "split_seed": data.split_seed,
            "stratify": data.stratify,
            "split_unit": data.split_unit,
        }
    files = [
        {
            "split": source.split,
            "sha256": source.sha256,
            "delimiter": source.format.delimiter,
            "quoted": source.format.quoted,
        }
        for source in sources
    ]
    description = {"version": version, "settings": settings, "sources": files}
    fingerprint = hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
    return description | {"fingerprint": fingerprint}


def folder_name(sources: Sequence[HasPath], fingerprint: str) -> str:
    """Name of the prepared set: the first file's, for people, and the fingerprint's beginning."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", sources[0].path.stem).strip("._-")[:40]
    return f"{stem or 'data'}-{fingerprint[:16]}"


def _source(name: str, split: str | None, data: TextTable, progress: Progress) -> Source:
    path = Path(name).expanduser()
    form = Format.of(path, data)
    try:
        check_regular(path)
        state = file_state(path)
        sha256 = file_sha256(path, state[0], progress)
    except OSError as error:
        raise open_problem(path, error) from error
    source = Source(path=path, split=split, format=form, sha256=sha256, state=state)
    source.check_unchanged()
    return source


def file_state(path: Path) -> tuple[int, int]:
    """Size and time of the last change; none for a file that is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (-1, -1)
    return found.st_size, found.st_mtime_ns


def file_sha256(path: Path, size: int, progress: Progress) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    digest, done = hashlib.sha256(), 0
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            done += len(block)
            progress("hash", done, size)
    return digest.hexdigest()


def _check_settings(data: TextTable) -> None:
    check_encoding(data.encoding)
    if data.labels is not None:
        repeated = sorted({label for label in data.labels if data.labels.count(label) > 1})
        if repeated:
            raise DataError(f"data.labels names {', '.join(repeated)} more than once")
        if not data.labels:
            raise DataError("data.labels is empty; name the labels, or set null to take those of the data")
    if data.path is not None:
        _check_splits(data.splits)


def _check_splits(splits: Mapping[str, float]) -> None:
    for name, share in splits.items():
        if not _SPLIT_NAME.fullmatch(name):
            raise DataError(f"data.splits: {name!r} cannot name a split; use letters, digits and underscores")
        if not (math.isfinite(share) and share >= 0):
            raise DataError(f"data.splits.{name} is {share}, expected a share of 0 or more")
    if not splits.get(TRAIN):
        raise DataError(f"data.splits gives nothing to {TRAIN!r}; its share must be above 0")
