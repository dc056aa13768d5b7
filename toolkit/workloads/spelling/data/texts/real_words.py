"""Which words of a text are real: those of a dictionary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from toolkit.workloads.spelling.data.texts.token_types import is_ascii_punctuation
from toolkit.workloads.spelling.data.texts.words import pieces_of


class RealWords:
    """Distinguishes real words from non-words, with the definition of the published rates.

    A word is real if each of its pieces is in the dictionary, case-sensitively, or is ASCII punctuation. Only
    the context can show that such a word is a misspelling. Each distinct word is looked up once.
    """

    def __init__(self, dictionary: Collection[str]) -> None:
        self._dictionary = dictionary
        self._is_real = lru_cache(maxsize=1 << 20)(self._look_up)

    def of(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return whether each word is real, [n]."""
        return np.fromiter(map(self._is_real, words), bool, len(words))

    def _look_up(self, word: str) -> bool:
        pieces = (piece.text for piece in pieces_of(word))
        return all(piece in self._dictionary or is_ascii_punctuation(piece) for piece in pieces)
