"""The prepared-sample store: built once per content and settings, then mapped into memory.

<prepared_dir>/<name>-<key>/     complete or absent, never half
    samples.sqlite               sources, texts, samples, labels, tokens, results: for people and queries
    tokens.bin offsets.bin labels.bin text_ids.bin split_<split>.bin   flat arrays (layout.py), for training
    vocabulary.json              tokens and their counts in the training split, or
    tokenizer.json …             the pretrained tokenizer
    meta.json                    counts, settings, fingerprint, size and checksum of every file
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
from toolkit.data import layout
from toolkit.data.build import build
from toolkit.data.encoders import Encoder, VocabularyEncoder, encoder
from toolkit.data.labels import describe_skipped
from toolkit.data.pretrained import PretrainedEncoder
from toolkit.data.publish import publish_once
from toolkit.data.results import holds_results
from toolkit.data.rows import Rows
from toolkit.data.samples import Samples, pad_batch
from toolkit.data.sealed import PREPARE_AGAIN, map_array, read_seal
from toolkit.data.sources import (
    TEST,
    Progress,
    Source,
    describe,
    find_sources,
    folder_name,
    one_source,
)
from toolkit.data.survey import survey
from toolkit.data.tokens import Vocabulary
from toolkit.errors import DataError
from toolkit.files import crc32

__all__ = ["Prepared", "Samples", "pad_batch", "prepare", "prepare_benchmark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An opened prepared set.

    meta     the manifest
    built    whether the call that returned this made it, rather than found it
    encoded  how many texts that call tokenized
    """

    path: Path
    meta: Mapping[str, Any]
    built: bool = False
    encoded: int = 0

    @classmethod
    def open(cls, path: Path) -> Prepared:
        """Open a set and check that its files are there in full size. Raises DataError."""
        # Runs add their results to the database.
        return cls(path=path, meta=read_seal(path, layout.VERSION, growing=layout.DATABASE))

    @property
    def fingerprint(self) -> str:
        """Names the content: SHA-256 of the sources and of every setting that matters."""
        return str(self.meta["fingerprint"])

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.meta["labels"])

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids, padding and the unknown token included."""
        return int(self.meta["vocabulary_size"])

    @property
    def pad_id(self) -> int:
        """Fills a batch up to its longest sample; stands in no sample."""
        return int(self.meta["pad_id"])

    @property
    def unk_id(self) -> int | None:
        """Stands for an unknown token; None where the tokenizer knows every text."""
        return None if self.meta["unk_id"] is None else int(self.meta["unk_id"])

    @property
    def splits(self) -> Mapping[str, int]:
        """Samples of each split."""
        return dict(self.meta["splits"])

    def summary(self) -> str:
        """What it holds and what was left out, for people: a line, and one for each thing left out."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.splits.items())
        texts = "" if self.meta["samples"] == self.meta["texts"] else f" from {self.meta['texts']:,} texts"
        state = "prepared" if self.built else "was prepared before"
        facts = f"{len(self.labels)} labels, {self.vocabulary_size:,} tokens; {self.path}"
        return "\n".join([f"{state}: {counts}{texts}; {facts}", *describe_skipped(self.meta["skipped"])])

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        names = ("texts", "samples", "splits", "labels", "vocabulary_size", "tokens", "cut_texts", "skipped")
        facts = {name: self.meta[name] for name in names}
        return {"path": str(self.path), "built": self.built, "fingerprint": self.fingerprint, **facts}

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """The pretrained tokenizer's files, as a model's folder holds them; none for other tokenizers."""
        names = (layout.TOKENIZER, *layout.TOKENIZER_SETTINGS)
        return tuple(self.path / name for name in names if name in self.meta["files"])

    def vocabulary(self) -> Vocabulary:
        """Tokens and counts of the tokenizers words and whitespace. Raises DataError for another one."""
        return Vocabulary.load(self.path / layout.VOCABULARY)

    def verify(self) -> None:
        """Compare every file with its checksum. Raises DataError for the first that differs.

        A database that runs have added results to is checked by SQLite itself instead.
        """
        for name, expected in self.meta["files"].items():
            try:
                found = crc32(self.path / name)
            except OSError as error:
                raise DataError(f"{self.path / name} cannot be read ({error}); {PREPARE_AGAIN}") from error
            if found != expected["crc32"] and not (name == layout.DATABASE and holds_results(self.path)):
                raise DataError(f"{self.path / name} is damaged: its checksum differs; {PREPARE_AGAIN}")

    def split(self, name: str) -> Samples:
        """The samples of a split, in the order of the source. Raises DataError for an unknown split."""
        if name not in self.splits:
            raise DataError(f"{self.path} has no split {name!r}, only {', '.join(self.splits)}")
        ids = self._map(layout.split_file(name), layout.ID_DTYPE)
        offsets = self._map(layout.OFFSETS, layout.OFFSET_DTYPE)
        starts = offsets[ids]
        arrays = {
            "lengths": (offsets[ids + 1] - starts).astype(np.int32),
            "labels": self._map(layout.LABELS, layout.LABEL_DTYPE)[ids],
            "starts": starts,
            "text_ids": self._map(layout.TEXT_IDS, layout.ID_DTYPE)[ids],
        }
        for array in arrays.values():
            array.setflags(write=False)
        flat = self._map(layout.TOKENS, self.meta["token_dtype"])
        return Samples(ids=ids, flat=flat, database=self.path / layout.DATABASE, **arrays)

    def _map(self, name: str, dtype: str) -> npt.NDArray[Any]:
        return map_array(self.path / name, dtype)


def prepare(data: TextTable, progress: Progress | None = None, *, lock_timeout_s: float = 3600.0) -> Prepared:
    """Open the prepared set of a data section, building it first where there is none.

    Any number of processes may call this at once: one builds, the others wait while it lives.
    `progress` is told (stage, done, total); stages: hash (bytes), read, tokenize (rows), encode (tokens).
    Raises DataError, which says what to do; nothing is left behind then.
    """
    report = progress or _silently
    sources = find_sources(data, report)
    description = describe(data, sources, layout.VERSION)
    return _publish(data, sources, description, partial(encoder, data), report, lock_timeout_s)


def prepare_benchmark(data: TextTable, known: Prepared, progress: Progress | None = None) -> Prepared:
    """Open the whole file `data.path` as the one split `test`, with the labels and tokens of a known set.

    Built first where there is none, as `prepare` does it. Raises DataError.
    """
    report = progress or _silently
    data = replace(data, labels=known.labels)
    using: Callable[[], Encoder]
    if data.tokenizer == "pretrained":
        # The set's own copy: where it came from, there may be another one by now.
        data = replace(data, tokenizer_path=str(known.path))
        using = partial(PretrainedEncoder, str(known.path), data.max_tokens, known.pad_id)
        further: dict[str, Any] = {}
    else:
        vocabulary = known.vocabulary()
        using = partial(VocabularyEncoder, data, vocabulary)
        further = {"vocabulary": crc32(known.path / layout.VOCABULARY)}
    sources = (one_source(data, TEST, report),)
    description = describe(data, sources, layout.VERSION, **further)
    return _publish(data, sources, description, using, report)


def _publish(
    data: TextTable,
    sources: Sequence[Source],
    description: dict[str, Any],
    using: Callable[[], Encoder],
    report: Progress,
    lock_timeout_s: float = 3600.0,
) -> Prepared:
    """Open the set of these sources, building it first where there is none."""
    path = Path(data.prepared_dir).expanduser() / folder_name(sources, description["fingerprint"])
    encoded = 0

    def is_ready() -> bool:
        return _opened(path, description["fingerprint"]) is not None

    def fill(folder: Path) -> None:
        nonlocal encoded
        # Its faults first: they are found sooner than those of the rows.
        tokens = using()
        rows = Rows(data, sources)
        known = survey(data, sources, rows, report)
        encoded = build(folder, data, sources, rows, known, tokens, description, report)

    built = publish_once(path, fill, is_ready, lock_timeout_s)
    return replace(Prepared.open(path), built=built, encoded=encoded)


def _silently(stage: str, done: int, total: int | None) -> None:
    """A progress function for whoever wants none."""


def _opened(path: Path, fingerprint: str) -> Prepared | None:
    """The set, if it is there, whole, and made from this very content."""
    try:
        found = Prepared.open(path)
    except DataError as error:
        if isinstance(error.__cause__, PermissionError):
            # Somebody else's private set is not a damaged one: building would remove it.
            raise
        return None
    return found if found.fingerprint == fingerprint else None
