"""The prepared set of texts: made once per content and settings, then mapped into memory.

<prepared_dir>/<name>-<key>/         complete or absent, never half
    samples.sqlite                   sources, samples, what was left out, counts, results: for people
    *.bin                            flat arrays (layout.py), for training
    tokenizer.json …                 what encoded them
    meta.json                        counts, settings, fingerprint, size and checksum of every file
<prepared_dir>/.<name>-<key>.parts/  shards that are done, while it is made
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.config.kinds import SpellingTexts
from toolkit.data.lists import Array, Lists
from toolkit.data.publish import publish_once
from toolkit.data.sealed import map_array, read_seal
from toolkit.data.sources import TEST, Progress, folder_name
from toolkit.errors import DataError
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.build import join, make_shards
from toolkit.spelling_samples.pool import usable_cpus
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.spelling_samples.sources import Source, describe, find_sources


@dataclass(frozen=True, slots=True, kw_only=True)
class SpellingSet:
    """An opened prepared set.

    meta   the manifest
    built  whether the call that returned this made it, rather than found it
    speed  of making it, for people; empty where it was found
    """

    path: Path
    meta: Mapping[str, Any]
    built: bool = False
    speed: str = ""

    @classmethod
    def open(cls, path: Path) -> SpellingSet:
        """Open a set and check that its files are there in full size. Raises DataError."""
        # Runs add their results to the database.
        return cls(path=path, meta=read_seal(path, layout.VERSION, growing=layout.DATABASE))

    @property
    def fingerprint(self) -> str:
        """Names the content: SHA-256 of files, tokenizers and every setting that matters."""
        return str(self.meta["fingerprint"])

    @property
    def splits(self) -> Mapping[str, int]:
        """Samples of each split."""
        return dict(self.meta["splits"])

    @property
    def vocabulary_size(self) -> int:
        return int(self.meta["vocabulary_size"])

    @property
    def output_vocabulary_size(self) -> int | None:
        """Tokens of the tokenizer that writes, if there is one."""
        size = self.meta["output_vocabulary_size"]
        return None if size is None else int(size)

    @property
    def pad_id(self) -> int:
        """Fills a batch up to its longest sample."""
        return int(self.meta["pad_id"])

    @property
    def has_dictionary(self) -> bool:
        """Whether it is known which words are known."""
        return bool(self.meta["has_dictionary"])

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """What encodes texts as this set has them."""
        names = (layout.TOKENIZER, layout.OUTPUT_TOKENIZER, layout.DICTIONARY)
        return tuple(self.path / name for name in names if name in self.meta["files"])

    def summary(self) -> str:
        """What it holds and what was left out, for people."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        state = "prepared" if self.built else "was prepared before"
        lines = [f"{state}: {counts} texts; {self.vocabulary_size:,} tokens; {self.path}"]
        if self.speed:
            lines.append(self.speed)
        for reason, count in self.meta["left_out"].items():
            lines.append(f"left out: {count:,} lines ({reason})")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        facts = {name: self.meta[name] for name in ("samples", "splits", "left_out", "vocabulary_size")}
        return {"path": str(self.path), "built": self.built, "fingerprint": self.fingerprint, **facts}

    def split(self, name: str) -> SpellingSamples:
        """The samples of a split, in the order of the files. Raises DataError for an unknown split."""
        if name not in self.splits:
            raise DataError(f"{self.path} has no split {name!r}, only {', '.join(self.splits)}")
        ids = np.flatnonzero(self._array(layout.SPLIT) == layout.SPLITS.index(name))
        lists = self._lists()
        arrays: dict[str, Array] = {
            "ids": ids,
            "lengths": lists[layout.TOKENS].lengths(ids).astype(np.int32),
            "errors": self._array(layout.ERRORS)[ids].astype(np.int64),
            "sources": self._array(layout.SOURCES)[ids],
            "lines": self._array(layout.LINES)[ids],
        }
        for array in arrays.values():
            array.setflags(write=False)
        return SpellingSamples(split=name, lists=lists, database=self.path / layout.DATABASE, **arrays)

    def _lists(self) -> dict[str, Lists]:
        found = {}
        for group in layout.LISTS:
            offsets = map_array(self.path / layout.offsets_file(group[0]), layout.OFFSET_DTYPE)
            found.update({name: Lists(self._array(name), offsets) for name in group})
        return found

    def _array(self, name: str) -> Array:
        return map_array(self.path / layout.array_file(name), self.meta["dtypes"][name])


def prepare(
    data: SpellingTexts,
    progress: Progress | None = None,
    *,
    base: SpellingSet | None = None,
    lock_timeout_s: float = 3600.0,
) -> SpellingSet:
    """Open the prepared set of a data section, making it first where there is none.

    Any number of processes may call this at once: one makes it, the others wait while it lives. One that
    was interrupted goes on with the shards that it has.
    With `base`, the set that a model was trained on, `data.path` is a file to be scored: all of it is the
    split `test`, and tokenizers and dictionary are those of that set.
    Raises DataError, which says what to do.
    """
    report = progress or (lambda stage, done, total: None)
    if base is not None:
        data = _as_trained(data, base)
    sources = find_sources(data, report) if base is None else (Source.open(str(data.path), TEST, report),)
    description = describe(data, sources, base.fingerprint if base else None)
    path = Path(data.prepared_dir).expanduser() / folder_name(sources, description["fingerprint"])
    parts = path.with_name(f".{path.name}.parts")
    speed = ""

    def fill(folder: Path) -> None:
        nonlocal speed
        workers, start = data.workers or usable_cpus(), time.monotonic()
        job, made = make_shards(parts, data, sources, workers, report)
        speed = _speed(made, time.monotonic() - start, workers)
        join(folder, job, description, report)

    def is_ready() -> bool:
        return _opened(path, description["fingerprint"]) is not None

    built = publish_once(path, fill, is_ready, lock_timeout_s)
    # A process may have been killed between the two.
    shutil.rmtree(parts, ignore_errors=True)
    return replace(SpellingSet.open(path), built=built, speed=speed)


def _as_trained(data: SpellingTexts, base: SpellingSet) -> SpellingTexts:
    """A section that encodes as the set of a trained model does."""
    held = {path.name: str(path) for path in base.tokenizer_files}
    return replace(
        data,
        tokenizer_path=held[layout.TOKENIZER],
        output_tokenizer_path=held.get(layout.OUTPUT_TOKENIZER),
        dictionary=held.get(layout.DICTIONARY),
    )


def _speed(texts: int, seconds: float, workers: int) -> str:
    processes = "1 process" if workers == 1 else f"up to {workers} processes"
    return f"{texts:,} texts read in {seconds:.1f} s: {texts / max(seconds, 1e-9):,.0f}/s with {processes}"


def _opened(path: Path, fingerprint: str) -> SpellingSet | None:
    """The set, if it is there, whole, and made from this very content."""
    try:
        found = SpellingSet.open(path)
    except DataError as error:
        if isinstance(error.__cause__, PermissionError):
            # Somebody else's private set is not a damaged one: making it anew would remove it.
            raise
        return None
    return found if found.fingerprint == fingerprint else None
