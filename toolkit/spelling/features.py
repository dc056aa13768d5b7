"""What is seen of a word without its context: 13 features."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from toolkit.spelling.dictionary import most_frequent
from toolkit.spelling.special import is_currency, is_email, is_number, is_punctuation, is_url
from toolkit.spelling.words import pieces_of

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
#: Most frequent words of a dictionary that say little by themselves.
STOP_WORDS = 100
#: Distinct pieces that are remembered; then all are forgotten.
_REMEMBERED = 1 << 20

Features = npt.NDArray[np.uint8]


def stop_words(dictionary: Mapping[str, int], n: int = STOP_WORDS) -> frozenset[str]:
    """Return the n most frequent words of letters alone of a dictionary, in lower case."""
    letters: dict[str, int] = {}
    for word, frequency in dictionary.items():
        if word.isalpha():
            letters[word.lower()] = letters.get(word.lower(), 0) + frequency
    return frozenset(islice(most_frequent(letters), n))


class WordFeatures:
    """Computes features of the pieces of words; every distinct word is looked at once."""

    def __init__(self, dictionary: Collection[str], stop_words: Collection[str]) -> None:
        self._dictionary = frozenset(dictionary)
        self._stop_words = frozenset(stop_words)
        #: Rows of the pieces of a word, one after the other, as if white space followed.
        self._known: dict[str, bytes] = {}

    @classmethod
    def of_dictionary(cls, dictionary: Mapping[str, int]) -> WordFeatures:
        """Make them with the dictionary's most frequent words as stop words."""
        return cls(dictionary, stop_words(dictionary))

    def of(self, words: Sequence[str]) -> tuple[Features, npt.NDArray[np.int64]]:
        """Return features of the pieces of a text's words, and the place of each piece's word.

        1 where a piece has a feature, else 0: [pieces, 13], in the order of FEATURES; and [pieces].
        """
        if len(self._known) > _REMEMBERED:
            self._known = {}
        known = [self._known.get(word) or self._learn(word) for word in words]
        features = np.frombuffer(bytearray(b"".join(known)), dtype=np.uint8).reshape(-1, len(FEATURES))
        if words:
            features[-1, _SPACE_AFTER] = 0
        counts = np.fromiter(map(len, known), dtype=np.int64, count=len(known)) // len(FEATURES)
        return features, np.repeat(np.arange(len(words)), counts)

    def _learn(self, word: str) -> bytes:
        pieces = pieces_of(word)
        rows = [self._row(piece.text, piece is pieces[-1]) for piece in pieces]
        self._known[word] = b"".join(map(bytes, rows))
        return self._known[word]

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
