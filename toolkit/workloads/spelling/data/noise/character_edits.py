"""Artificial errors: insert, delete, swap or replace letters of a word."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

_T = TypeVar("_T")
#: A function that returns where an edit is possible, and a function that makes the edit there.
_Edit: TypeAlias = (
    "tuple[Callable[[_Letters], list[int]], Callable[[_Letters, int, np.random.Generator], None]]"
)


def misspelt(word: str, random: np.random.Generator, more_edits: float) -> str:
    """Return a word with one or more edits. The result is neither the word itself nor empty.

    more_edits  probability m of each further edit: there are k edits with probability (1 - m) m^(k - 1)
    """
    made = _edited(word, _count(random.random(), more_edits), random)
    # Several edits can undo each other; a single edit always changes the word.
    return made if made != word else _edited(word, 1, random)


def pick(values: Sequence[_T], random: np.random.Generator) -> _T:
    """Return one of the values, chosen uniformly."""
    return values[int(random.random() * len(values))]


def _count(draw: float, more: float) -> int:
    """Turn a uniform draw into a number of edits."""
    return 1 if more <= 0 else 1 + math.floor(math.log1p(-draw) / math.log(more))


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
