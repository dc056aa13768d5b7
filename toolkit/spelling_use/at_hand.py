"""Texts at hand, as a prepared set that lies in memory: what a task reads from files, it reads from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.lists import Array, Lists
from toolkit.data.sources import TEST
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.encoding import TextEncoder
from toolkit.spelling_samples.prepared import SpellingSet
from toolkit.spelling_samples.samples import SpellingSamples


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsAtHand(SpellingSet):
    """Encoded texts as the split `test`, that a task decodes; there is no database.

    path   the folder of the tokenizers and the dictionary that encoded them
    lists  by name, as in the layout
    """

    texts: Sequence[str]
    lists: Mapping[str, Lists]

    @classmethod
    def of(
        cls,
        folder: Path,
        encoder: TextEncoder,
        texts: Sequence[str],
        samples: Sequence[Mapping[str, Array]],
    ) -> TextsAtHand:
        """Take texts with the lists that the encoder has made of them."""
        reads, writes = encoder.tokens.tokenizer, encoder.output
        meta: dict[str, Any] = {
            "fingerprint": "",
            "splits": {TEST: len(samples)},
            "left_out": {},
            "files": {path.name: {} for path in folder.iterdir()},
            "vocabulary_size": len(reads),
            "pad_id": reads.padding,
            "output_vocabulary_size": None if writes is None else len(writes),
            "has_dictionary": (folder / layout.DICTIONARY).exists(),
        }
        return cls(path=folder, meta=meta, texts=texts, lists=_lists(samples))

    def split(self, name: str) -> SpellingSamples:
        """All texts, in their order, without errors that are known of."""
        ids = np.arange(self.splits[name])
        return SamplesAtHand(
            at_hand=self.texts,
            split=name,
            ids=ids,
            lengths=self.lists[layout.TOKENS].lengths(ids).astype(np.int32),
            errors=np.zeros(len(ids), np.int64),
            sources=np.zeros(len(ids), np.int64),
            lines=ids,
            lists=dict(self.lists),
            database=self.path / layout.DATABASE,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplesAtHand(SpellingSamples):
    """Samples whose texts are in memory, too."""

    at_hand: Sequence[str]

    def texts(self, indices: Array) -> Iterator[tuple[str, str | None]]:
        """Yield each of these texts twice: nobody knows what it should say."""
        for number in self.ids[indices].tolist():
            yield self.at_hand[number], self.at_hand[number]


def _lists(samples: Sequence[Mapping[str, Array]]) -> dict[str, Lists]:
    found = {}
    for group in layout.LISTS:
        lengths = np.array([len(sample[group[0]]) for sample in samples], dtype=np.int64)
        offsets = np.append(0, np.cumsum(lengths))
        for name in group:
            values = [np.zeros(0, np.int64), *(sample[name] for sample in samples)]
            found[name] = Lists(np.concatenate(values).astype(np.int64), offsets)
    return found
