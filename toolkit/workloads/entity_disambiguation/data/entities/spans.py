"""Spans of words and of characters, both with an exclusive end. A word is the text between blanks."""

from __future__ import annotations

import re

Span = tuple[int, int]

_WORD = re.compile(r"\S+")


def word_places(text: str) -> list[Span]:
    """Return the span of every word in characters."""
    return [word.span() for word in _WORD.finditer(text)]


def characters_of_words(text: str, words: Span) -> Span:
    """Convert a span of words to characters. Raises ValueError for an invalid span."""
    places = word_places(text)
    check_span(words, len(places), "words")
    return places[words[0]][0], places[words[1] - 1][1]


def words_of_characters(text: str, characters: Span) -> Span:
    """Convert a span of characters to the words that it touches. Raises ValueError for an invalid span.

    A part of a word counts as the word: a mention within "Vietnam-based" is that word.
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
