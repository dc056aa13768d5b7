"""The prepared set of texts with labels (see toolkit/data/prepared/folder.py).

Its folder also holds the tokenizer: vocabulary.json, or the files of a pretrained tokenizer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.prepared.arrays import map_array, map_lists
from toolkit.data.prepared.columns import split_ids
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.ragged import protect
from toolkit.data.sources.source_files import TEST, set_place
from toolkit.files import crc32
from toolkit.nlp.tokenizers.tokenizer_files import TOKENIZER, TOKENIZER_SETTINGS
from toolkit.nlp.tokens import Vocabulary
from toolkit.system.output.amounts import counted
from toolkit.workload import Progress, silent
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.build import build
from toolkit.workloads.text_classification.data.encoders import Encoding, encoder
from toolkit.workloads.text_classification.data.samples import Samples
from toolkit.workloads.text_classification.data.sources.first_pass import survey
from toolkit.workloads.text_classification.data.sources.labels import describe_skipped
from toolkit.workloads.text_classification.data.sources.source_files import describe, find_sources, one_source
from toolkit.workloads.text_classification.data.sources.table_warnings import describe_notable


class Prepared(PreparedFolder[Samples]):
    VERSION = layout.VERSION
    COLUMNS = (layout.TOKENS, layout.OFFSETS, layout.LABELS, layout.TEXT_IDS)
    FACTS = ("texts", "samples", "splits", "labels", "vocabulary_size", "tokens", "cut_texts", "skipped")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.meta["labels"])

    @property
    def encoding(self) -> Encoding:
        vocabulary_size, pad_id = int(self.meta["vocabulary_size"]), int(self.meta["pad_id"])
        return Encoding(folder=self.path, labels=self.labels, vocabulary_size=vocabulary_size, pad_id=pad_id)

    @property
    def notes(self) -> list[str]:
        """Return a line for each reason to leave rows out, and for each unusual property of the data."""
        cut, texts, most = (self.meta[name] for name in ("cut_texts", "texts", "settings"))
        ends = f"cut {cut:,} of {counted(texts, 'text')} at {most['max_tokens']:,} tokens (data.max_tokens)"
        return [
            *describe_skipped(self.meta["skipped"]),
            *([f"{ends}; data.fold makes samples of the rest"] if cut else []),
            *describe_notable(self.meta.get("notable", {})),
        ]

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"notable": self.meta.get("notable", {})}

    @property
    def tokenizer_files(self) -> tuple[Path, ...]:
        """The tokenizer's files: the vocabulary, or the files of a pretrained tokenizer."""
        names = (layout.VOCABULARY, TOKENIZER, *TOKENIZER_SETTINGS)
        return tuple(self.path / name for name in names if name in self.meta["files"])

    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokenizers `words` and `whitespace`. Raises DataError for `pretrained`."""
        return Vocabulary.load(self.path / layout.VOCABULARY)

    def _contents(self) -> str:
        texts = "" if self.meta["samples"] == self.meta["texts"] else f" from {self.meta['texts']:,} texts"
        return f"{texts}; {counted(len(self.labels), 'label')}, {self.meta['vocabulary_size']:,} tokens"

    def _details(self) -> list[str]:
        return self.notes

    def _samples(self, split: str) -> Samples:
        ids = map_array(self.path, split_ids(split))
        tokens = map_lists(self.path, layout.TOKENS.of(self.meta["token_dtype"]), layout.OFFSETS)
        arrays = protect(
            lengths=tokens.lengths(ids).astype(np.int32),
            labels=map_array(self.path, layout.LABELS)[ids],
            text_ids=map_array(self.path, layout.TEXT_IDS)[ids],
        )
        return Samples(ids=ids, tokens=tokens, database=self.database, **arrays)


def prepare(data: TextTable, progress: Progress | None = None, *, known: Encoding | None = None) -> Prepared:
    """Open the prepared set of a data section; build it first if it is missing.

    With `known` (of a trained model), all of the file `data.path` is the split `test`, with known labels and
    tokens. `progress` gets stage, done and total. Stages are hash (bytes), read and tokenize (rows), and
    encode (tokens). Raises like PreparedFolder.open_or_build.
    """
    report = progress or silent
    further: dict[str, Any] = {}
    if known is None:
        sources = find_sources(data, report)
    else:
        # Use the set's copy of a pretrained tokenizer, because the original folder may have changed.
        data = replace(data, labels=known.labels, tokenizer_path=str(known.folder))
        if data.tokenizer != "pretrained":
            further = {"vocabulary": crc32(known.folder / layout.VOCABULARY)}
        sources = (one_source(data, TEST, report),)
    description = describe(data, sources, **further)

    def fill(folder: Path) -> None:
        # Made first, because errors of the tokenizer are found faster than errors of the rows.
        tokens = encoder(data, known)
        build(folder, data, sources, survey(data, sources, report), tokens, description, report)

    return Prepared.open_or_build(*set_place(data.prepared_dir, sources, description), fill, progress)
