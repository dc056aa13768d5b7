"""Which words are real, and 13 features of a word; they do not depend on its context."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from toolkit.workloads.spelling.data.texts.dictionary import most_frequent
from toolkit.workloads.spelling.data.texts.token_types import (
    is_ascii_punctuation,
    is_currency,
    is_email,
    is_number,
    is_punctuation,
    is_url,
)
from toolkit.workloads.spelling.data.texts.words import pieces_of

FEATURES = (
    "punctuation",
    "currency",
    "number",
    "url",
    "email",
    "space_after",
    "title",
    "upper",
    "lower",
    "stop_word",
    "alphabetic",
    "in_dictionary",
    "lower_in_dictionary",
)
_SPACE_AFTER = FEATURES.index("space_after")
#: Number of stop words: the most frequent words of a dictionary.
STOP_WORDS = 100

Features = npt.NDArray[np.uint8]


def stop_words(dictionary: Mapping[str, int], n: int) -> frozenset[str]:
    """Return the n most frequent words of a dictionary that have letters only, in lower case."""
    letters: dict[str, int] = {}
    for word, frequency in dictionary.items():
        if word.isalpha():
            letters[word.lower()] = letters.get(word.lower(), 0) + frequency
    return frozenset(most_frequent(letters, n))


class WordFeatures:
    """Computes the features of the pieces of words; each distinct word is analysed once.

    The `stops` most frequent words of the dictionary are the stop words.
    """

    def __init__(self, dictionary: Mapping[str, int], stops: int = STOP_WORDS) -> None:
        self._dictionary = frozenset(dictionary)
        self._stop_words = stop_words(dictionary, stops)
        self._of_word = lru_cache(maxsize=1 << 20)(self._rows)

    def of(self, words: Sequence[str]) -> tuple[Features, npt.NDArray[np.int64]]:
        """Return the features of the pieces of a text's words, and the index of the word of each piece.

        The features are 1 or 0 in the order of FEATURES, [pieces, 13]; the indices are [pieces].
        """
        known = [self._of_word(word) for word in words]
        features = np.frombuffer(bytearray(b"".join(known)), dtype=np.uint8).reshape(-1, len(FEATURES))
        if words:
            features[-1, _SPACE_AFTER] = 0
        counts = np.fromiter(map(len, known), dtype=np.int64, count=len(known)) // len(FEATURES)
        return features, np.repeat(np.arange(len(words)), counts)

    def _rows(self, word: str) -> bytes:
        """Return the features of a word's pieces, row by row, as if white space followed the word."""
        pieces = pieces_of(word)
        return b"".join(bytes(self._row(piece.text, piece is pieces[-1])) for piece in pieces)

    def _row(self, piece: str, space_after: bool) -> tuple[bool, ...]:
        return (
            is_punctuation(piece),
            is_currency(piece),
            is_number(piece),
            is_url(piece),
            is_email(piece),
            space_after,
            piece.istitle(),
            piece.isupper(),
            piece.islower(),
            piece.lower() in self._stop_words,
            piece.isalpha(),
            piece in self._dictionary,
            piece.lower() in self._dictionary,
        )


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
