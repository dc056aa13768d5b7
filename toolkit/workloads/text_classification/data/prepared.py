"""The prepared set of texts with labels (toolkit/data/prepared/folder.py).

Its folder also holds the tokenizer: vocabulary.json, or the files of a pretrained one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.prepared.arrays import map_array, map_lists
from toolkit.data.prepared.columns import split_ids
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.ragged import protect
from toolkit.data.sources.source_files import TEST, set_place
from toolkit.files import crc32
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER, TOKENIZER_SETTINGS
from toolkit.nlp.tokens import Vocabulary
from toolkit.workload import Progress, silent
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.build import build
from toolkit.workloads.text_classification.data.encoders import Encoder, VocabularyEncoder, encoder
from toolkit.workloads.text_classification.data.samples import Samples
from toolkit.workloads.text_classification.data.sources.first_pass import survey
from toolkit.workloads.text_classification.data.sources.labels import describe_skipped
from toolkit.workloads.text_classification.data.sources.source_files import (
    Rows,
    Source,
    describe,
    find_sources,
    one_source,
)
from toolkit.workloads.text_classification.data.sources.table_warnings import describe_notable


class Prepared(PreparedFolder[Samples]):
    """An opened prepared set."""

    VERSION = layout.VERSION
    COLUMNS = (layout.TOKENS, layout.OFFSETS, layout.LABELS, layout.TEXT_IDS)
    FACTS = ("texts", "samples", "splits", "labels", "vocabulary_size", "tokens", "cut_texts", "skipped")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.meta["labels"])

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids, padding and the unknown token included."""
        return int(self.meta["vocabulary_size"])

    @property
    def pad_id(self) -> int:
        """Fills a batch up to its longest sample; occurs in no sample."""
        return int(self.meta["pad_id"])

    @property
    def encoding(self) -> Encoding:
        return Encoding(
            folder=self.path, labels=self.labels, vocabulary_size=self.vocabulary_size, pad_id=self.pad_id
        )

    @property
    def notes(self) -> list[str]:
        """Return unusual properties of the data, a line for each."""
        return describe_notable(self.meta.get("notable", {}))

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"notable": self.meta.get("notable", {})}

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """The tokenizer's files: the vocabulary, or those of a pretrained one by their usual names."""
        names = (layout.VOCABULARY, TOKENIZER, *TOKENIZER_SETTINGS)
        return tuple(self.path / name for name in names if name in self.meta["files"])

    def vocabulary(self) -> Vocabulary:
        """Tokens and counts of the tokenizers words and whitespace. Raises DataError for another one."""
        return Vocabulary.load(self.path / layout.VOCABULARY)

    def _contents(self) -> str:
        texts = "" if self.meta["samples"] == self.meta["texts"] else f" from {self.meta['texts']:,} texts"
        return f"{texts}; {len(self.labels)} labels, {self.vocabulary_size:,} tokens"

    def _details(self) -> list[str]:
        return [*describe_skipped(self.meta["skipped"]), *self.notes]

    def _samples(self, split: str) -> Samples:
        ids = map_array(self.path, split_ids(split))
        tokens = map_lists(self.path, layout.TOKENS.of(self.meta["token_dtype"]), layout.OFFSETS)
        arrays = protect(
            lengths=tokens.lengths(ids).astype(np.int32),
            labels=map_array(self.path, layout.LABELS)[ids],
            text_ids=map_array(self.path, layout.TEXT_IDS)[ids],
        )
        return Samples(ids=ids, tokens=tokens, database=self.database, **arrays)


def prepare(data: TextTable, progress: Progress | None = None) -> Prepared:
    """Open the prepared set of a data section, which is made first if it is missing.

    `progress` gets stage, done and total; stages: hash (bytes), read, tokenize (rows), encode (tokens).
    Otherwise as PreparedFolder.open_or_build.
    """
    report = progress or silent
    sources = find_sources(data, report)
    return _publish(data, sources, describe(data, sources), partial(encoder, data), report)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The encoding of a trained model, for other texts that it is to read.

    folder           holds the tokenizer: vocabulary.json, or the files of a pretrained one
    labels           by their codes
    vocabulary_size  numbers of tokens
    pad_id           fills a batch up to its longest sample
    """

    folder: Path
    labels: tuple[str, ...]
    vocabulary_size: int
    pad_id: int


def prepare_benchmark(data: TextTable, known: Encoding, progress: Progress | None = None) -> Prepared:
    """Open the whole file `data.path` as the one split `test`, with known labels and tokens.

    Made first if it is missing, as `prepare` does it. Raises DataError.
    """
    report = progress or silent
    data = replace(data, labels=known.labels)
    using: Callable[[], Encoder]
    if data.tokenizer == "pretrained":
        # The set's own copy: where it came from, there may be another one by now.
        data = replace(data, tokenizer_path=str(known.folder))
        using = partial(PretrainedEncoder, str(known.folder), data.max_tokens, known.pad_id)
        further: dict[str, Any] = {}
    else:
        file = known.folder / layout.VOCABULARY
        using = partial(VocabularyEncoder, data, Vocabulary.load(file))
        further = {"vocabulary": crc32(file)}
    sources = (one_source(data, TEST, report),)
    return _publish(data, sources, describe(data, sources, **further), using, report)


def _publish(
    data: TextTable,
    sources: Sequence[Source],
    description: dict[str, Any],
    using: Callable[[], Encoder],
    report: Progress,
) -> Prepared:
    """Open the set of these sources, which is made first if it is missing."""

    def fill(folder: Path) -> None:
        # Its faults first: they are found sooner than those of the rows.
        tokens = using()
        rows = Rows(data, sources)
        known = survey(data, sources, rows, report)
        build(folder, data, sources, rows, known, tokens, description, report)

    return Prepared.open_or_build(*set_place(data.prepared_dir, sources, description), fill)
