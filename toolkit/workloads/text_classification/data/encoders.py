"""Texts to numbered tokens: by a vocabulary that is counted on the way, or a pretrained tokenizer."""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.nlp.tokens import PAD_ID, RESERVED, UNK_ID, Pieces, Vocabulary, token_spans, tokenizer
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout

#: Stands for the tokens of an empty text; the tokens that are met count from 1.
_NO_TOKEN = 0


def encoder(data: TextTable) -> Encoder:
    """The encoder that a data section describes. Raises DataError."""
    if data.tokenizer == "pretrained":
        return PretrainedEncoder(str(data.tokenizer_path), data.max_tokens, key="data.max_tokens")
    return VocabularyEncoder(data)


def cut_texts(data: TextTable, texts: Sequence[str], numbers: Callable[[list[str]], bytes]) -> Pieces:
    """Cut texts into words; `numbers` returns those of the words of a text, at least one."""
    kind, lowercase = data.tokenizer, data.lowercase
    cut = tokenizer(kind, lowercase=lowercase)
    return Pieces(
        [numbers(cut(text)) for text in texts],
        lambda places: (token_spans(texts[each], kind, lowercase=lowercase) for each in places),
    )


@dataclass(slots=True)
class VocabularyEncoder:
    """Words of the texts; which of them get an id is known when all are counted. Memory: distinct words.

    known          the words that get an id, where another set has decided that
    before, after  numbers of the special tokens around every sample
    pad_id         fills a batch up to its longest sample; occurs in no sample
    unk_id         the id for an unknown token; None without such a token
    """

    data: TextTable
    known: Vocabulary | None = None
    before: Sequence[int] = ()
    after: Sequence[int] = ()
    pad_id: int = PAD_ID
    unk_id: int | None = UNK_ID
    _numbers: defaultdict[str, int] = field(
        default_factory=lambda: defaultdict(itertools.count(_NO_TOKEN + 1).__next__)
    )
    _vocabulary: Vocabulary | None = None

    def encode(self, texts: Sequence[str]) -> Pieces:
        """Cut texts into tokens, at least one each, special ones included."""
        number, nothing = self._numbers.__getitem__, array("I", [_NO_TOKEN]).tobytes()
        return cut_texts(
            self.data, texts, lambda tokens: array("I", map(number, tokens)).tobytes() or nothing
        )

    def finalize(self, counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[tuple[str, int]]]:
        """Return the final id of every number, and the token and count of every id.

        counts  [numbers met, or fewer] how often each occurs in the training split
        """
        counted = np.zeros(len(self._numbers) + 1, dtype=np.int64)
        counted[: len(counts)] = counts
        vocabulary = self.known or self._most_frequent(counted)
        self._vocabulary = vocabulary
        # The texts that a known vocabulary was counted on are not available.
        unknown = 0 if self.known else int(counted.sum()) - sum(vocabulary.counts)
        reserved = [(RESERVED[PAD_ID], 0), (RESERVED[UNK_ID], unknown)]
        names = [*reserved, *zip(vocabulary.tokens, vocabulary.counts, strict=True)]
        return np.concatenate([[UNK_ID], vocabulary.encode(self._numbers)]), names

    def save(self, folder: Path) -> None:
        """Write the files that are needed to read or make such ids again."""
        assert self._vocabulary is not None, "finalize comes first"
        self._vocabulary.save(folder / layout.VOCABULARY)

    def _most_frequent(self, counted: npt.NDArray[np.int64]) -> Vocabulary:
        """The vocabulary that the section describes, of these counts by number. Raises DataError."""
        vocabulary = Vocabulary.from_counts(
            dict(zip(self._numbers, counted[_NO_TOKEN + 1 :].tolist(), strict=True)),
            min_count=self.data.min_count,
            max_size=self.data.max_vocabulary,
        )
        if not vocabulary.tokens:
            raise DataError(
                f"no token occurs {self.data.min_count} times or more in the training split "
                f"({int(counted.sum())} tokens in all); lower data.min_count, or is column "
                f"{self.data.text_column!r} (data.text_column) not the text?"
            )
        return vocabulary


#: Cuts texts into tokens with provisional numbers, which `finalize` maps to the final ones.
Encoder: TypeAlias = VocabularyEncoder | PretrainedEncoder
