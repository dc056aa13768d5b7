"""Spans of words and of characters, both with an exclusive end; a word is what is between blanks."""

from __future__ import annotations

import re

Span = tuple[int, int]

_WORD = re.compile(r"\S+")


def word_places(text: str) -> list[Span]:
    """Return the characters of every word."""
    return [word.span() for word in _WORD.finditer(text)]


def characters_of_words(text: str, words: Span) -> Span:
    """Return the characters of a run of words. Raises ValueError, which names the fault."""
    places = word_places(text)
    check_span(words, len(places), "words")
    return places[words[0]][0], places[words[1] - 1][1]


def words_of_characters(text: str, characters: Span) -> Span:
    """Return the shortest run of words that covers the characters. Raises ValueError.

    Words that are covered in part count in whole: a mention within "Vietnam-based" is that word.
    """
    check_span(characters, len(text), "characters")
    start, end = characters
    touched = [index for index, (left, right) in enumerate(word_places(text)) if left < end and start < right]
    if not touched:
        raise ValueError(f"characters {list(characters)} are blank")
    return touched[0], touched[-1] + 1


def check_span(span: Span, length: int, unit: str) -> None:
    """Raise ValueError unless 0 <= start < end <= length."""
    start, end = span
    if start >= end:
        raise ValueError(f"{unit} {list(span)}: the end must be after the start")
    if start < 0 or end > length:
        raise ValueError(f"{unit} {list(span)} lie outside the text, which has {length} {unit}")
