"""The corrections that `tokenization_repair_plus` writes, and the words that it reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from toolkit.data.ragged import Array, Lists
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.texts.repairs import repaired
from toolkit.workloads.spelling.data.texts.words import words_of
from toolkit.workloads.spelling.tasks.correction.batches import text_of_words, units_of
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer


def corrections(samples: SpellingSamples, written: Lists, tokenizer: TextTokenizer) -> Iterator[str]:
    """Yield each text of a split with what was written in place of its words; see `ids_of`."""
    for words, ids in zip(words_read(samples, np.arange(len(samples))), written, strict=True):
        yield text_of_words(units_of(ids, tokenizer.end), words, tokenizer)


def words_read(samples: SpellingSamples, indices: Array) -> Iterator[list[str]]:
    """Yield the words of each of these texts with its white space as it should be, where that is known."""
    for place, (text, _) in enumerate(samples.texts(indices)):
        repairs = samples.rows(layout.REPAIRS, indices[place : place + 1], layout.UNKNOWN)[0, 1:-1]
        # What is not known is no class of its own: nothing is done.
        yield words_of(repaired(text, repairs.tolist()))
