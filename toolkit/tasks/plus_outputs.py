"""What `tokenization_repair_plus` says of a text, as a row of numbers, and as texts; no task itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.data.lists import Array
from toolkit.spelling.repairs import repaired
from toolkit.spelling.words import words_of
from toolkit.spelling_samples import layout
from toolkit.spelling_samples.samples import SpellingSamples
from toolkit.tasks.correction_batches import text_of, unpack
from toolkit.tasks.detection import THRESHOLD
from toolkit.tasks.repair_batches import NOTHING, repaired_by
from toolkit.tokenization.tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlusOutputs:
    """Reads rows: what to do with each character, the probability of each word's error, what is written.

    characters  numbers of the first part, and of the second
    tokenizer   of what is written; None where nothing is
    """

    characters: int
    tokenizer: TextTokenizer | None

    @property
    def width(self) -> int:
        """Numbers before what is written."""
        return 2 * self.characters

    def repaired(self, text: str, row: Array) -> str:
        """Return a text with its white space as the model would have it."""
        return repaired_by(text, row[: self.characters])

    def probabilities(self, row: Array) -> list[float]:
        """Return how likely each word that was read has an error."""
        part = row[self.characters : self.width]
        found: list[float] = part[part != NOTHING].tolist()
        return found

    def labels(self, row: Array) -> list[int]:
        """Return 1 for each word that was read and has an error, else 0."""
        return [int(each > THRESHOLD) for each in self.probabilities(row)]

    def correction(self, words: Sequence[str], row: Array) -> str:
        """Return what was written in place of these words; a word without an end stays as it was."""
        assert self.tokenizer is not None
        return text_of(unpack(row[self.width :]), words, self.tokenizer)

    def corrections(self, samples: SpellingSamples, rows: Array) -> Iterator[str]:
        """Yield the same of each text of a split, whose words are those of the right white space."""
        for words, row in zip(words_read(samples), rows, strict=True):
            yield self.correction(words, row)


def words_read(samples: SpellingSamples) -> Iterator[list[str]]:
    """Yield the words of each text with its white space as it should be, where that is known."""
    every = np.arange(len(samples))
    for index, (text, _) in zip(every, samples.texts(every), strict=True):
        repairs = samples.rows(layout.REPAIRS, every[index : index + 1], layout.UNKNOWN)[0, 1:-1]
        # What is not known is no class of its own: nothing is done.
        yield words_of(repaired(text, repairs.tolist()))
