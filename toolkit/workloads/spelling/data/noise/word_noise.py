"""Noise that misspells words: edits of letters, listed misspellings, or both."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias, TypeVar

import numpy as np

from toolkit.workloads.spelling.config import noise as config
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Sample
from toolkit.workloads.spelling.data.texts.token_types import is_special
from toolkit.workloads.spelling.data.texts.words import pieces_of

_T = TypeVar("_T")
#: A function that returns where an edit is possible, and a function that makes the edit there.
_Edit: TypeAlias = (
    "tuple[Callable[[_Letters], list[int]], Callable[[_Letters, int, np.random.Generator], None]]"
)
#: Number of distinct words in the cache of pieces.
_REMEMBERED = 1 << 18
#: Start and end of a piece of a word, and its misspellings.
_Listed: TypeAlias = "tuple[tuple[tuple[int, int], tuple[str, ...]], ...]"


class WordNoise:
    """Misspells words of a text; the number of words stays the same.

    The number of errors is drawn over all words, including numbers and addresses. The errors are then
    distributed over the words that can be misspelt. Likewise, the share of listed misspellings does not
    depend on the number of words with a listed misspelling, unless there are too few.
    """

    def __init__(self, described: config.WordNoise, misspellings: Misspellings) -> None:
        self._rate, self._at_least = described.rate, described.at_least
        self._misspellings = misspellings
        is_listed = isinstance(described, config.RealisticNoise)
        self._artificial: float = getattr(described, "artificial", 0.0 if is_listed else 1.0)
        # A section without artificial errors does not have this key.
        self._more_edits: float = getattr(described, "more_edits", 0.0)
        self._listed_of = lru_cache(_REMEMBERED)(self._listed)

    def apply(self, sample: Sample, random: np.random.Generator) -> Sample:
        """Return the sample with words of its text misspelt."""
        assert sample.spaced is None, "words are misspelt before white space is changed"
        words = sample.text.split()
        editable = [place for place, word in enumerate(words) if editable_pieces(word)]
        drawn = int((random.random(len(words)) < self._rate).sum())
        count = min(max(drawn, self._at_least), len(editable))
        wanted = int((random.random(count) >= self._artificial).sum())
        listed = []
        if wanted:
            listed = _choose([place for place in editable if self._listed_of(words[place])], wanted, random)
        for place in listed:
            word = words[place]
            (a, b), wrongs = pick(self._listed_of(word), random)
            words[place] = word[:a] + pick(wrongs, random) + word[b:]
        if self._artificial > 0:
            left = sorted(set(editable).difference(listed))
            for place in _choose(left, count - len(listed), random):
                word = words[place]
                a, b = pick(editable_pieces(word), random)
                words[place] = word[:a] + misspelt(word[a:b], random, self._more_edits) + word[b:]
        return replace(sample, text=" ".join(words))

    def _listed(self, word: str) -> _Listed:
        """Return the pieces of a word that have misspellings."""
        pieces = ((piece, self._misspellings.of(word[slice(*piece)])) for piece in editable_pieces(word))
        return tuple(each for each in pieces if each[1])


@lru_cache(maxsize=_REMEMBERED)
def editable_pieces(word: str) -> tuple[tuple[int, int], ...]:
    """Return start and end of the pieces of a word that may be misspelt: with letters, not special."""
    return tuple(
        piece.characters
        for piece in pieces_of(word)
        if not is_special(piece.text) and any(map(str.isalpha, piece.text))
    )


def _choose(places: Sequence[int], count: int, random: np.random.Generator) -> list[int]:
    """Choose `count` of the places uniformly, or all if there are fewer."""
    return [places[at] for at in np.argsort(random.random(len(places)))[:count].tolist()]


def misspelt(word: str, random: np.random.Generator, more_edits: float) -> str:
    """Return a word with one or more edits. The result is neither the word itself nor empty.

    more_edits  probability m of each further edit: there are k edits with probability (1 - m) m^(k - 1)
    """
    draw = random.random()
    count = 1 if more_edits <= 0 else 1 + math.floor(math.log1p(-draw) / math.log(more_edits))
    made = _edited(word, count, random)
    # Several edits can undo each other; a single edit always changes the word.
    return made if made != word else _edited(word, 1, random)


def pick(values: Sequence[_T], random: np.random.Generator) -> _T:
    """Return one of the values, chosen uniformly."""
    return values[int(random.random() * len(values))]


def _edited(word: str, edits: int, random: np.random.Generator) -> str:
    letters = _Letters(word)
    for _ in range(edits):
        possible = [(places, edit) for of, edit in _EDITS if (places := of(letters))]
        if not possible:
            break
        places, edit = pick(possible, random)
        edit(letters, pick(places, random), random)
    return "".join(letters.texts)


class _Letters:
    """The letters of a word, and which of them are still unedited. A deleted letter is an empty text."""

    __slots__ = ("free", "texts")

    def __init__(self, word: str) -> None:
        self.texts = list(word)
        self.free = [True] * len(self.texts)

    def gaps(self) -> list[int]:
        """Places before which a letter may be inserted: not next to an edited letter."""
        around = [True, *self.free, True]
        return [place for place in range(len(self.texts) + 1) if around[place] and around[place + 1]]

    def insert(self, place: int, random: np.random.Generator) -> None:
        self.texts.insert(place, pick(string.ascii_letters, random))
        self.free.insert(place, False)

    def untouched(self) -> list[int]:
        return [place for place, free in enumerate(self.free) if free]

    def replace(self, place: int, random: np.random.Generator) -> None:
        self._put(place, pick(string.ascii_letters.replace(self.texts[place], ""), random))

    def deletable(self) -> list[int]:
        # The last letter stays, because a word must not be empty.
        return self.untouched() if sum(map(bool, self.texts)) > 1 else []

    def delete(self, place: int, random: np.random.Generator) -> None:
        self._put(place, "")

    def swappable(self) -> list[int]:
        """Places of letters that differ from the next one."""
        return [
            place
            for place in self.untouched()
            if place + 1 < len(self.texts)
            and self.free[place + 1]
            and self.texts[place] != self.texts[place + 1]
        ]

    def swap(self, place: int, random: np.random.Generator) -> None:
        first, second = self.texts[place : place + 2]
        self._put(place, second)
        self._put(place + 1, first)

    def _put(self, place: int, text: str) -> None:
        self.texts[place], self.free[place] = text, False


_EDITS: tuple[_Edit, ...] = (
    (_Letters.gaps, _Letters.insert),
    (_Letters.deletable, _Letters.delete),
    (_Letters.swappable, _Letters.swap),
    (_Letters.untouched, _Letters.replace),
)
