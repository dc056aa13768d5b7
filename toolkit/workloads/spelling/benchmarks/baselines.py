"""Baselines: predictions without a model. Every model should score better.

do nothing          leaves every text unchanged
out of dictionary   labels words that are not in the dictionary as errors
symspell            replaces unknown words by the most frequent of the nearest words
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache, cached_property
from pathlib import Path

import symspellpy
from symspellpy import SymSpell, Verbosity

from toolkit.workloads.spelling.benchmarks.lines import read_lines
from toolkit.workloads.spelling.benchmarks.scoring import Predictors
from toolkit.workloads.spelling.data.texts.token_types import is_special
from toolkit.workloads.spelling.data.texts.words import PIECE, pieces_of

#: Largest edit distance of symspell. Time and memory grow fast with it, and most errors have fewer edits.
_EDITS = 2


def baselines(dictionary: Mapping[str, int]) -> Predictors:
    """Return the baselines by kind of benchmark and name; dictionary: words with their frequencies."""

    def labels(text: str) -> str:
        return " ".join(map(str, unknown_words(text, dictionary)))

    def label(text: str) -> str:
        return str(max(unknown_words(text, dictionary), default=0))

    # A file of predictions may have the same name without "(baseline)".
    return {
        "sed_words": {"out of dictionary (baseline)": labels},
        "sed_sequence": {"out of dictionary (baseline)": label},
        "sec": {"do nothing (baseline)": str, "symspell (baseline)": Corrector(dictionary)},
        "tokenization_repair": {"do nothing (baseline)": str},
    }


def unknown_words(text: str, dictionary: Collection[str]) -> list[int]:
    """Return for each word of a text 1 if one of its pieces is unknown, else 0.

    Known pieces are in the dictionary, unchanged or in lower case, or punctuation, numbers and addresses.
    """
    return [
        int(not all(_is_right(piece.text, dictionary) for piece in pieces_of(word))) for word in text.split()
    ]


def _is_right(piece: str, dictionary: Collection[str]) -> bool:
    return piece in dictionary or piece.lower() in dictionary or is_special(piece)


class Corrector:
    """Corrects the pieces of words one by one with symspell's look-up; keeps case and everything else.

    symspell's look-up of whole texts also splits and merges words. But it returns them in lower case and
    without punctuation, which benchmarks count as errors.
    """

    def __init__(self, dictionary: Mapping[str, int]) -> None:
        self._dictionary = dictionary
        self._corrected = cache(self._correct)

    def __call__(self, text: str) -> str:
        """Return a text with its unknown pieces replaced by the nearest words."""
        return PIECE.sub(lambda piece: self._corrected(piece.group()), text)

    def _correct(self, piece: str) -> str:
        if _is_right(piece, self._dictionary):
            return piece
        nearest = self._words.lookup(piece.lower(), Verbosity.TOP, max_edit_distance=_EDITS)
        if not nearest:
            return piece
        word: str = nearest[0].term
        if len(piece) > 1 and piece.isupper():
            return word.upper()
        return word[:1].upper() + word[1:] if piece[:1].isupper() else word

    @cached_property
    def _words(self) -> SymSpell:
        # Created at first use, because it takes seconds.
        words = Counter[str]()
        for word, frequency in self._dictionary.items():
            words[word.lower()] += frequency
        made = SymSpell(max_dictionary_edit_distance=_EDITS)
        for word, frequency in words.items():
            made.create_dictionary_entry(word, frequency)
        return made


def english_words() -> dict[str, int]:
    """Read the English dictionary of the symspellpy package: 82,834 words in lower case, few names."""
    path = Path(symspellpy.__file__).with_name("frequency_dictionary_en_82_765.txt")
    pairs = map(str.split, read_lines(path))
    return {word: int(frequency) for word, frequency in pairs}
