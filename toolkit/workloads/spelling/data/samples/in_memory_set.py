"""A prepared set in memory: a task reads texts from it as from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.ragged import Array, Lists
from toolkit.data.sources.source_files import TEST
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.encoding import TextEncoder
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples


@dataclass(frozen=True, kw_only=True)
class TextsAtHand(SpellingSet):
    """Encoded texts as the split `test`, without a database.

    path   the folder of the tokenizers and the dictionary that encoded the texts
    lists  by name, as in the layout
    """

    texts: Sequence[str]
    lists: Mapping[str, Lists]

    @classmethod
    def of(
        cls, folder: Path, encoder: TextEncoder, texts: Sequence[str], samples: Sequence[Mapping[str, Array]]
    ) -> TextsAtHand:
        """Make a set of texts and the lists that the encoder returned for each text."""
        reads, writes = encoder.tokenizer, encoder.output
        meta: dict[str, Any] = {
            "fingerprint": "",
            "splits": {TEST: len(samples)},
            "left_out": {},
            "vocabulary_size": len(reads),
            "pad_id": reads.padding,
            "output_vocabulary_size": None if writes is None else len(writes),
            "has_dictionary": (folder / layout.DICTIONARY).exists(),
        }
        names = (name for group in layout.LISTS for name in group)
        lists = {name: Lists.of([lists[name] for lists in samples], np.int64) for name in names}
        return cls(path=folder, meta=meta, texts=texts, lists=lists)

    def _samples(self, split: str) -> SpellingSamples:
        """Return all texts in their order. Their errors are unknown, so `errors` is 0."""
        ids = np.arange(self.splits[split])
        return SpellingSamples(
            at_hand=self.texts,
            split=split,
            ids=ids,
            lengths=self.lists[layout.TOKENS].lengths(ids).astype(np.int32),
            errors=np.zeros(len(ids), np.int64),
            sources=np.zeros(len(ids), np.int64),
            lines=ids,
            lists=dict(self.lists),
            database=self.database,
        )
