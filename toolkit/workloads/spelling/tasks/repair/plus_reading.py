"""Reading texts with `tokenization_repair_plus`: first the white space, then the words that this gives.

No task itself. Evaluations know where words begin; users of a model do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from toolkit.data.ragged import Array
from toolkit.task import lists_of
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.characters import CharacterTokens
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.data.texts.dictionary import read_dictionary
from toolkit.workloads.spelling.data.texts.features import WordFeatures
from toolkit.workloads.spelling.data.texts.words import words_of
from toolkit.workloads.spelling.models.batches import NONE, RepairPlusBatch
from toolkit.workloads.spelling.models.repair_plus import TokenizationRepairPlus
from toolkit.workloads.spelling.tasks.repair.batches import classes_of, plus_batch, repair_batch, repaired_by
from toolkit.workloads.spelling.tokenizers.tokenizer import load_tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlusReader:
    """Encodes texts as a prepared set does, and asks models in evaluation mode about them.

    features  of words; None where the model reads none
    """

    tokens: CharacterTokens
    features: WordFeatures | None

    @classmethod
    def of(cls, data: SpellingSet, *, with_features: bool) -> PlusReader:
        """Load the tokenizer and the dictionary of a prepared set. Raises DataError."""
        dictionary = read_dictionary(data.path / layout.DICTIONARY) if data.has_dictionary else {}
        return cls(
            tokens=CharacterTokens(load_tokenizer(data.path / layout.TOKENIZER)),
            features=WordFeatures(dictionary) if with_features else None,
        )

    @torch.no_grad()
    def repair(self, model: TokenizationRepairPlus, texts: Sequence[str], device: torch.device) -> list[str]:
        """Return texts with their white space as the model would have it; white space is single in them."""
        rows = [self.tokens.of(text, words_of(text))[0] for text in texts]
        lengths = np.array([len(row) for row in rows])
        batch = repair_batch(_stacked(rows, self.tokens.tokenizer.padding), lengths, device)
        classes = lists_of(classes_of(model.repairs(batch), batch.lengths))
        return [repaired_by(text, each) for text, each in zip(texts, classes, strict=True)]

    def batch(self, texts: Sequence[str], repaired: Sequence[str], device: torch.device) -> RepairPlusBatch:
        """Return texts with the words that they have with other white space, as `repair` returns it."""
        words = [words_of(each) for each in repaired]
        tokens, pieces = zip(*map(self.tokens.of, texts, words), strict=True)
        features = self.features or WordFeatures({})
        of_pieces = [features.of(each) for each in words]
        of_words = _stacked([numbers for _, numbers in of_pieces], NONE)
        found = np.zeros((*of_words.shape, of_pieces[0][0].shape[1]), dtype=np.uint8)
        for row, (each, _) in zip(found, of_pieces, strict=True):
            row[: len(each)] = each
        return plus_batch(
            _stacked(tokens, self.tokens.tokenizer.padding),
            np.array([len(each) for each in tokens]),
            _stacked(pieces, layout.NOBODY),
            of_words,
            device,
            features=None if self.features is None else found,
            word_count=max(map(len, words)),
        )


def _stacked(rows: Sequence[Array], fill: int) -> Array:
    """Rows of several lengths as an array, [rows, longest] int64; at least one column."""
    found = np.full((len(rows), max(1, *map(len, rows))), fill, dtype=np.int64)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found
