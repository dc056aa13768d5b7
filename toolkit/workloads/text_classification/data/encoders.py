"""Encode texts as numbered tokens, with a vocabulary of the texts or a pretrained tokenizer."""

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

#: Number of the single token of a text without words; numbers of words begin at 1.
_NO_TOKEN = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """The encoding of a trained model, for reading other texts.

    folder           has the tokenizer: vocabulary.json, or the files of a pretrained tokenizer
    labels           in the order of their codes
    vocabulary_size  number of token ids, including padding and the unknown token
    pad_id           fills a batch up to its longest sample; is not in any sample
    """

    folder: Path
    labels: tuple[str, ...]
    vocabulary_size: int
    pad_id: int


def encoder(data: TextTable, known: Encoding | None) -> Encoder:
    """Return the encoder of a data section, with the tokens of `known` if it is given. Raises DataError."""
    if data.tokenizer == "pretrained":
        pad_id = known.pad_id if known else None
        return PretrainedEncoder(str(data.tokenizer_path), data.max_tokens, pad_id, key="data.max_tokens")
    return VocabularyEncoder(data, Vocabulary.load(known.folder / layout.VOCABULARY) if known else None)


def cut_texts(data: TextTable, texts: Sequence[str], numbers: Callable[[list[str]], bytes]) -> Pieces:
    """Cut texts into words; `numbers` returns the numbers of a text's words, at least one, as bytes."""
    kind, lowercase = data.tokenizer, data.lowercase
    cut = tokenizer(kind, lowercase=lowercase)
    return Pieces(
        [numbers(cut(text)) for text in texts],
        lambda places: (token_spans(texts[each], kind, lowercase=lowercase) for each in places),
    )


@dataclass(slots=True)
class VocabularyEncoder:
    """Numbers the words of texts, and gives ids after all words are counted. Memory: distinct words.

    known          the words with an id, if they come from another set
    before, after  numbers of the special tokens around every sample
    pad_id         fills a batch up to its longest sample; is not in any sample
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
        """Cut texts into numbered tokens, at least one for each text."""
        number, nothing = self._numbers.__getitem__, array("I", [_NO_TOKEN]).tobytes()
        return cut_texts(
            self.data, texts, lambda tokens: array("I", map(number, tokens)).tobytes() or nothing
        )

    def finalize(self, counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[tuple[str, int]]]:
        """Return the final id of every number, and the token and count of every id.

        counts  how often each number occurs in the training split; may end early, zeros follow
        """
        counted = np.zeros(len(self._numbers) + 1, dtype=np.int64)
        counted[: len(counts)] = counts
        vocabulary = self.known or self._most_frequent(counted)
        self._vocabulary = vocabulary
        # The training texts of a known vocabulary are not available here.
        unknown = 0 if self.known else int(counted.sum()) - sum(vocabulary.counts)
        reserved = [(RESERVED[PAD_ID], 0), (RESERVED[UNK_ID], unknown)]
        names = [*reserved, *zip(vocabulary.tokens, vocabulary.counts, strict=True)]
        return np.concatenate([[UNK_ID], vocabulary.encode(self._numbers)]), names

    def save(self, folder: Path) -> None:
        assert self._vocabulary is not None, "finalize comes first"
        self._vocabulary.save(folder / layout.VOCABULARY)

    def _most_frequent(self, counted: npt.NDArray[np.int64]) -> Vocabulary:
        """Return the vocabulary by the section's settings from these counts by number. Raises DataError."""
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


#: Cuts texts into tokens with provisional numbers; `finalize` returns the id of each number.
Encoder: TypeAlias = VocabularyEncoder | PretrainedEncoder
