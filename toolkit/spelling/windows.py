"""Texts that are longer than a model reads: windows with context, and what they say put together."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_WORD = re.compile(r"\S+")
#: Share of a window that is context, on each side.
_CONTEXT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A stretch of a text, in tokens or characters.

    begin, end   what is read; the end is exclusive
    first, last  what it answers for: the rest is context
    """

    begin: int
    first: int
    last: int
    end: int


def windows_of(length: int, starts: Sequence[int], size: int, context: int | None = None) -> list[Window]:
    """Cut a text into windows of at most `size`, of which each token is in the core of one.

    length   tokens of the text
    starts   where its words begin, ascending: windows, cores and contexts begin and end there, but within a
             word that is longer than a core, or than the context
    context  most tokens of context on each side, less than half of size; an eighth of it if not given

    A text that fits is one window, an empty one has none.
    """
    context = size // _CONTEXT if context is None else context
    assert 0 <= 2 * context < size
    found: list[Window] = []
    first = begin = 0
    while first < length:
        last = end = length
        if length - begin > size:
            last = _cut_before(starts, first, begin + size - context)
            end = max(last, _cut_before(starts, last, min(last + context, length)))
        found.append(Window(begin=begin, first=first, last=last, end=end))
        first, begin = last, _cut_after(starts, last - context, last)
    return found


def _cut_before(starts: Sequence[int], above: int, place: int) -> int:
    """The last start up to a place, or the place itself if there is none above the other one."""
    found = bisect_right(starts, place) - 1
    return starts[found] if found >= 0 and starts[found] > above else place


def _cut_after(starts: Sequence[int], place: int, below: int) -> int:
    """The first start from a place on, or the place itself if there is none below the other one."""
    found = bisect_left(starts, place)
    return starts[found] if found < len(starts) and starts[found] < below else max(place, 0)


def word_starts(text: str) -> list[int]:
    """Where the words of a text begin, in characters."""
    return [match.start() for match in _WORD.finditer(text)]


def merged(parts: Sequence[Sequence[T]], windows: Sequence[Window]) -> list[T]:
    """One value for each token, of the window in whose core it is; parts have one for each that is read."""
    return [
        value
        for part, window in zip(parts, windows, strict=True)
        for value in part[window.first - window.begin : window.last - window.begin]
    ]


def words_read(window: Window, starts: Sequence[int]) -> range:
    """Numbers of the words that a window reads, in part or whole; they begin at these tokens."""
    return range(max(bisect_right(starts, window.begin) - 1, 0), bisect_left(starts, window.end))


def merged_detections(
    parts: Sequence[Sequence[int]], windows: Sequence[Window], starts: Sequence[int]
) -> list[int]:
    """1 for each word that a window calls wrong in whose core it is, in part or whole; else 0.

    parts  for each window the labels of `words_read`
    """
    found = [0] * len(starts)
    for part, window in zip(parts, windows, strict=True):
        for label, word in zip(part, words_read(window, starts), strict=True):
            stop = starts[word + 1] if word + 1 < len(starts) else window.end
            if starts[word] < window.last and stop > window.first:
                found[word] |= label
    return found


def begins_word(text: str, windows: Sequence[Window]) -> list[bool]:
    """Whether white space stands before the core of each window of characters, or at its beginning."""
    return [any(each.isspace() for each in text[max(at.first - 1, 0) : at.first + 1]) for at in windows]


def joined(parts: Sequence[str], apart: Sequence[bool]) -> str:
    """One text of what is written for each core, with a space before those that begin a word.

    apart  for windows of characters what `begins_word` says; for those of tokens whether their first one
           begins a word
    """
    text, space = "", False
    for part, new in zip(parts, apart, strict=True):
        space = space or new
        if part.strip():
            text += (" " if text and space else "") + part.strip()
            space = False
    return text
