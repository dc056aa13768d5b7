"""Texts of any length as passages that a model reads at once, with context around what each answers for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from toolkit.spelling.windows import Window, windows_of, word_starts

#: Tells how many tokens a word has by itself; those of a text are those of its words.
Tokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What a model reads at once.

    text   that is read
    core   characters of it, begin and exclusive end, that it answers for: the rest is context
    words  the same in words
    apart  whether white space stands before the core, or it is the beginning
    kept   what stands in place of a correction: a word of which only the beginning was read
    """

    text: str
    core: tuple[int, int]
    words: tuple[int, int]
    apart: bool = True
    kept: str | None = None


def whole(text: str) -> Passage:
    """Return a text that fits."""
    return Passage(text=text, core=(0, len(text)), words=(0, len(text.split())))


def passages_of_words(words: Sequence[str], size: int, tokens: Tokens) -> Iterator[Passage]:
    """Yield passages of whole words, of at most `size` tokens; a word too long for that is one by itself."""
    most = size - 2 * _context(size)
    for is_long, group in groupby(words, lambda word: tokens(word) > most):
        if is_long:
            yield from (_long(word, most, tokens) for word in group)
        else:
            yield from _windows(list(group), size, tokens)


def _context(size: int) -> int:
    return size // 8


def _long(word: str, most: int, tokens: Tokens) -> Passage:
    """As much of a word as has so many tokens, and its first letter in any case."""
    text = word[:most]
    while len(text) > 1 and tokens(text) > most:
        text = text[: len(text) // 2]
    return Passage(text=text, core=(0, len(text)), words=(0, 1), kept=word)


def _windows(words: Sequence[str], size: int, tokens: Tokens) -> Iterator[Passage]:
    ends = list(accumulate(map(tokens, words)))
    starts = [0, *ends[:-1]]
    for window in windows_of(ends[-1], starts, size, _context(size)):
        # No word is longer than a core, so that cores end where words do; of context whole words are read.
        begin, first, last = (
            bisect_left(starts, place) for place in (window.begin, window.first, window.last)
        )
        read = words[begin : bisect_right(ends, window.end)]
        text = " ".join(read)
        at = [0, *accumulate(len(word) + 1 for word in read)]
        core = (at[first - begin], min(at[last - begin], len(text)))
        yield Passage(text=text, core=core, words=(first - begin, last - begin))


def passages_of_characters(text: str, size: int) -> Iterator[Passage]:
    """Yield passages of at most `size` characters of a text, cut between words where that can be."""
    for window in windows_of(len(text), word_starts(text), size):
        yield _stripped(text, window)


def _stripped(text: str, window: Window) -> Passage:
    """A window without white space around it."""
    read = text[window.begin : window.end]
    begin = window.begin + len(read) - len(read.lstrip())
    read = read.strip()
    first, last = (min(max(place - begin, 0), len(read)) for place in (window.first, window.last))
    before = text[max(window.first - 1, 0) : window.first + 1]
    return Passage(
        text=read,
        core=(first, last),
        words=(0, 0),
        apart=window.first == 0 or any(each.isspace() for each in before),
    )
