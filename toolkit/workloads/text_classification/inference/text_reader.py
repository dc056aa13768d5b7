"""Texts to the token numbers that a trained model knows, cut as its training cut them. No torch."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from toolkit.data.ragged import Lists, offsets_of
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.nlp.tokens import NUMBER, Pieces, Vocabulary
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.encoders import cut_texts
from toolkit.workloads.text_classification.data.folding import fold
from toolkit.workloads.text_classification.data.prepared import Encoding


class TextReader:
    """Encodes texts as the run's prepared set was encoded: the same samples of the same texts."""

    def __init__(self, data: TextTable, kept: Encoding) -> None:
        self._data = data
        if data.tokenizer == "pretrained":
            encoder = PretrainedEncoder(str(kept.folder), data.max_tokens, kept.pad_id)
            self._encode, self._before, self._after = encoder.encode, encoder.before, encoder.after
        else:
            self._encode, self._before, self._after = self._words, (), ()
            self._vocabulary = Vocabulary.load(kept.folder / layout.VOCABULARY)

    def _words(self, texts: Sequence[str]) -> Pieces:
        numbers = self._vocabulary.encode
        return cut_texts(self._data, texts, lambda tokens: numbers(tokens).astype(NUMBER).tobytes())

    def read(self, texts: Sequence[str]) -> tuple[Lists, npt.NDArray[np.int64]]:
        """The tokens of all samples of some texts, and the place of the text that each is of: [samples]."""
        pieces = self._encode(texts)
        samples = [list(self._cut(text, pieces, place)) for place, text in enumerate(texts)]
        around = [array("I", each).tobytes() for each in (self._before, self._after)]
        whole = [around[0] + each + around[1] for each in chain.from_iterable(samples)]
        lengths = np.array([len(each) // NUMBER.itemsize for each in whole], dtype=np.int64)
        text_of = np.repeat(np.arange(len(texts)), [len(each) for each in samples])
        return Lists(np.frombuffer(b"".join(whole), NUMBER), offsets_of(lengths)), text_of

    def _cut(self, text: str, pieces: Pieces, place: int) -> Iterator[bytes]:
        """The tokens of each sample of a text, without the special ones around them."""
        numbers, size = pieces.numbers[place], NUMBER.itemsize
        room = self._data.max_tokens - len(self._before) - len(self._after)
        if len(numbers) <= room * size or self._data.fold == "none":
            yield numbers[: room * size]
            return
        ((_, ends),) = pieces.spans([place])
        for a, b in pairwise(fold(text, ends, room, self._data.fold)):
            yield numbers[a * size : b * size]
