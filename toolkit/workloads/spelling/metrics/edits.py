"""The parts of an edited text: edits of characters, words that they touch, words that stay.

Texts are normalised: one space between two words, none around them. Words are named by their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from rapidfuzz.distance import Indel, Levenshtein

from toolkit.workloads.spelling.metrics.alignment import (
    DELETE,
    DIAGONAL,
    INSERT,
    Codes,
    Pair,
    Rule,
    align,
    kept,
)

Words: TypeAlias = frozenset[int]

_KINDS: tuple[Literal["replace", "insert", "delete"], ...] = ("replace", "insert", "delete")
#: Of characters; a space is inserted and deleted, never replaced, so that words split and merge.
_CHARACTERS = Rule(order=(DELETE, INSERT, DIAGONAL), solid=ord(" "))
#: Of words: a longest common subsequence.
_WORDS = Rule(order=(DIAGONAL, INSERT, DELETE), solid=None)


class Edit(NamedTuple):
    """A character inserted, deleted or replaced.

    start  place in the text; of an insertion, that of the character before which it is
    to     place in the other text; of a deletion, that of the character before which it was
    """

    kind: Literal["replace", "insert", "delete"]
    start: int
    to: int


def edits_between(texts: Sequence[str], others: Sequence[str]) -> list[list[Edit]]:
    """Return the edits of each text that make it the other one at its place, in their order.

    Raises DataError for texts that are too long and too different to be compared.
    """
    found: list[list[Edit]] = [[] for _ in texts]
    places = [place for place, text in enumerate(texts) if text != others[place]]
    pairs = [_characters(texts[place], others[place]) for place in places]
    for number, steps in align(pairs, _CHARACTERS):
        which = ~kept(pairs[number], steps)
        columns = (steps.kinds[which], steps.firsts[which], steps.seconds[which])
        found[places[number]] = [
            Edit(_KINDS[kind], start, to)
            for kind, start, to in zip(*(column.tolist() for column in columns), strict=True)
        ]
    return found


def edited_words(text: str, other: str, edits: Iterable[Edit]) -> tuple[Words, Words]:
    """Return the words that edits touch, of the text and of the other one.

    A space that is deleted touches both words around it, and the one that they become; a space that is
    inserted likewise. A space is of the word before it.
    """
    touched: set[int] = set()
    touched_there: set[int] = set()
    for kind, start, to in edits:
        word, word_there = word_at(text, start), word_at(other, to)
        touched.add(word)
        touched_there.add(word_there)
        if kind == "delete" and text[start] == " ":
            touched.add(word + 1)
        elif kind == "insert" and other[to] == " ":
            touched_there.add(word_there + 1)
    return frozenset(touched), frozenset(touched_there)


def word_at(text: str, place: int) -> int:
    """Return the word that a character is of."""
    return text.count(" ", 0, place)


def matching_words(texts: Sequence[str], others: Sequence[str]) -> list[tuple[Words, Words]]:
    """Return for each text and the other one at its place the words that stay, in both.

    They are those of a longest common subsequence of words.
    """
    found = [_all_words(text) for text in texts]
    places = [place for place, text in enumerate(texts) if text != others[place]]
    pairs = [_words(texts[place], others[place]) for place in places]
    for number, steps in align(pairs, _WORDS):
        which = kept(pairs[number], steps)
        found[places[number]] = (Words(steps.firsts[which].tolist()), Words(steps.seconds[which].tolist()))
    return found


def _all_words(text: str) -> tuple[Words, Words]:
    words = Words(range(len(text.split())))
    return words, words


def _characters(text: str, other: str) -> Pair:
    """A pair of characters; a cheapest way that may replace spaces, with these paid twice, is a bound."""
    steps = Levenshtein.editops(text, other)
    spaces = sum(
        step.tag == "replace" and " " in (text[step.src_pos], other[step.dest_pos]) for step in steps
    )
    return Pair(first=_codes(text), second=_codes(other), bound=len(steps) + spaces)


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<i4")).astype(np.int32)


def _words(text: str, other: str) -> Pair:
    numbers: dict[str, int] = {}
    first, second = (
        [numbers.setdefault(word, len(numbers)) for word in line.split()] for line in (text, other)
    )
    bound = Indel.distance(first, second)
    return Pair(first=np.array(first, np.int32), second=np.array(second, np.int32), bound=bound)
