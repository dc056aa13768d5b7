"""Differences between two texts: edits of characters, the words that they touch, the words that stay.

Texts are normalised: one space between two words, none around them. A word is given by its place.
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
#: For characters. Spaces are only inserted and deleted, never replaced, which splits and merges words.
_CHARACTERS = Rule(order=(DELETE, INSERT, DIAGONAL), solid=ord(" "))
#: For words: gives a longest common subsequence.
_WORDS = Rule(order=(DIAGONAL, INSERT, DELETE), solid=None)


class Edit(NamedTuple):
    """A character that is inserted, deleted or replaced.

    start  place in the text; for an insertion, the place of the next character
    to     place in the other text; for a deletion, the place of the next character
    """

    kind: Literal["replace", "insert", "delete"]
    start: int
    to: int


def edits_between(texts: Sequence[str], others: Sequence[str]) -> list[list[Edit]]:
    """Return, for each text, the edits that convert it to the other text at its place, in order.

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
    """Return the words that edits touch, in the text and in the other text.

    A deleted space touches the two words around it, and the word that they become. An inserted space touches
    the word that it splits, and both parts.
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
    """Return the word of a character; a space belongs to the word before it."""
    return text.count(" ", 0, place)


def matching_words(texts: Sequence[str], others: Sequence[str]) -> list[tuple[Words, Words]]:
    """Return the words that stay, in each text and in the other text at its place.

    These are the words of a longest common subsequence.
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
    """Return a pair of characters; its bound is the Levenshtein distance, with replaced spaces counted 2."""
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
