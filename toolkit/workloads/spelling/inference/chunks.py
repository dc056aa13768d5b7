"""Cut long texts into passages that a model can read. A passage has a core, and context around the core."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

_WORD = re.compile(r"\S+")
#: The context on each side is the size of a window divided by this.
_CONTEXT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of a text, in tokens or characters.

    begin, end   range that is read; the end is exclusive
    first, last  range of its core; the rest is context
    """

    begin: int
    first: int
    last: int
    end: int


def windows_of(length: int, starts: Sequence[int], size: int) -> list[Window]:
    """Cut a text into windows of at most `size`; each token is in the core of one window.

    length  tokens of the text
    starts  where its words begin, ascending. Windows and cores begin and end there, except within a word that
            is longer than a core or than the context

    A text that fits is one window; an empty text has none.
    """
    context = size // _CONTEXT
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
    """Return the last start that is at most `place`, if it is above `above`; else `place`."""
    found = bisect_right(starts, place) - 1
    return starts[found] if found >= 0 and starts[found] > above else place


def _cut_after(starts: Sequence[int], place: int, below: int) -> int:
    """Return the first start that is at least `place`, if it is below `below`; else `place`, at least 0."""
    found = bisect_left(starts, place)
    return starts[found] if found < len(starts) and starts[found] < below else max(place, 0)


#: Returns the number of tokens of a word; a text has the tokens of its words.
Tokens = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a text that a model reads at once.

    text   the text that is read
    core   begin and exclusive end of the core, in characters; the rest is context
    words  begin and exclusive end of the core, in words
    apart  whether the core begins the text, or follows white space
    kept   output instead of a correction: a word that is too long, so that only its beginning is read
    """

    text: str
    core: tuple[int, int]
    words: tuple[int, int]
    apart: bool = True
    kept: str | None = None


def passages_of_words(words: Sequence[str], size: int, tokens: Tokens) -> Iterator[Passage]:
    """Yield passages of whole words, of at most `size` tokens; a longer word is a separate passage."""
    most = size - 2 * (size // _CONTEXT)
    for is_long, group in groupby(words, lambda word: tokens(word) > most):
        if is_long:
            yield from (_long(word, most, tokens) for word in group)
        else:
            yield from _windows(list(group), size, tokens)


def _long(word: str, most: int, tokens: Tokens) -> Passage:
    """Return the beginning of a word: at most `most` tokens, but at least one letter."""
    text = word[:most]
    while len(text) > 1 and tokens(text) > most:
        text = text[: len(text) // 2]
    return Passage(text=text, core=(0, len(text)), words=(0, 1), kept=word)


def _windows(words: Sequence[str], size: int, tokens: Tokens) -> Iterator[Passage]:
    ends = list(accumulate(map(tokens, words)))
    starts = [0, *ends[:-1]]
    for window in windows_of(ends[-1], starts, size):
        # No word is longer than a core, so cores end where words end. Context is read in whole words.
        begin, first, last = (
            bisect_left(starts, place) for place in (window.begin, window.first, window.last)
        )
        read = words[begin : bisect_right(ends, window.end)]
        text = " ".join(read)
        at = [0, *accumulate(len(word) + 1 for word in read)]
        core = (at[first - begin], min(at[last - begin], len(text)))
        yield Passage(text=text, core=core, words=(first - begin, last - begin))


def passages_of_characters(text: str, size: int) -> Iterator[Passage]:
    """Yield passages of at most `size` characters, cut between words if possible."""
    starts = [match.start() for match in _WORD.finditer(text)]
    for window in windows_of(len(text), starts, size):
        # Passages have no white space around them.
        read = text[window.begin : window.end]
        begin = window.begin + len(read) - len(read.lstrip())
        read = read.strip()
        first, last = (min(max(place - begin, 0), len(read)) for place in (window.first, window.last))
        before = text[max(window.first - 1, 0) : window.first + 1]
        apart = window.first == 0 or any(map(str.isspace, before))
        yield Passage(text=read, core=(first, last), words=(0, 0), apart=apart)
