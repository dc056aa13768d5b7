"""Convert texts to the token numbers of a trained model, cut as in its training. Imports no torch."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolkit.data.ragged import Lists, offsets_of
from toolkit.nlp.tokenizers.pretrained import PretrainedEncoder
from toolkit.nlp.tokens import NUMBER, Pieces, Vocabulary
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data import layout
from toolkit.workloads.text_classification.data.encoders import Encoding, cut_texts
from toolkit.workloads.text_classification.data.folding import cut_into_samples


class TextReader:
    """Encodes texts like the run's prepared set: the same texts give the same samples."""

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
        """Return the tokens of all samples of texts, and the place of each sample's text: [samples]."""
        before, after = (array("I", each).tobytes() for each in (self._before, self._after))
        room = self._data.max_tokens - len(self._before) - len(self._after)
        samples = list(cut_into_samples(texts, self._encode(texts), room, self._data.fold))
        tokens = [before + each.tokens + after for each in samples]
        lengths = np.array([len(each) // NUMBER.itemsize for each in tokens], dtype=np.int64)
        text_of = np.array([each.place for each in samples], dtype=np.int64)
        return Lists(np.frombuffer(b"".join(tokens), NUMBER), offsets_of(lengths)), text_of
