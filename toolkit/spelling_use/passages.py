"""Texts of any length as passages that a model reads at once, with context around what each answers for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from toolkit.spelling.windows import Window, windows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Passages:
    """A text in windows of whole words.

    words    of the text; of one that a window cannot hold, its beginning
    windows  in words; of a text that fits, one; of none, none
    """

    words: Sequence[str]
    windows: Sequence[Window]

    @property
    def texts(self) -> list[str]:
        """What is read in each window."""
        return [" ".join(self.words[window.begin : window.end]) for window in self.windows]


def whole(words: Sequence[str]) -> Passages:
    """Return a text that fits."""
    window = Window(begin=0, first=0, last=len(words), end=len(words))
    return Passages(words=words, windows=[window] if words else [])


def passages_of(words: Sequence[str], size: int, tokens: Callable[[str], int]) -> Passages:
    """Cut a text into passages of at most `size` tokens.

    tokens  tells how many a word has by itself; those of a text are those of its words
    """
    context = size // 8
    words = [_beginning(word, size - 2 * context, tokens) for word in words]
    ends = list(accumulate(map(tokens, words)))
    starts = [0, *ends[:-1]]
    found = windows_of(ends[-1] if ends else 0, starts, size, context)
    return Passages(words=words, windows=[_in_words(window, starts, ends) for window in found])


def _beginning(word: str, most: int, tokens: Callable[[str], int]) -> str:
    """As much of a word as has so many tokens, and its first letter in any case."""
    while len(word) > 1 and tokens(word) > most:
        word = word[: min(len(word) // 2, most)]
    return word


def _in_words(window: Window, starts: Sequence[int], ends: Sequence[int]) -> Window:
    """A window of tokens as one of words. No word is longer than a core, so that cores end where words do;
    of context only whole words are read."""
    return Window(
        begin=bisect_left(starts, window.begin),
        first=bisect_left(starts, window.first),
        last=bisect_left(starts, window.last),
        end=bisect_right(ends, window.end),
    )
