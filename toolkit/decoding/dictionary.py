"""Rescoring by a dictionary: words that are not in it, or will never be, cost."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

#: Letters, and what may join or follow them within a word; not the rest of a number such as 3rd.
_WORD = re.compile(r"(?<![\w'’-])[^\W\d_](?:[^\W\d_]|['’-])*")
_JOINTS = "'’-"
#: What stands for the first bytes of a character whose last ones are not written yet.
_UNFINISHED = "\N{REPLACEMENT CHARACTER}"


class DictionaryPrefixes:
    """Words, and what words begin with.

    A sorted list takes the place of a trie: all words with the same beginning stand side by side in it.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = sorted(set(words))

    def has(self, word: str) -> bool:
        """Whether this is a word."""
        return self._at(word) == word

    def begins_one(self, prefix: str) -> bool:
        """Whether a word begins with this."""
        return bool(self._words) and self._at(prefix).startswith(prefix)

    def _at(self, text: str) -> str:
        """The first word that does not come before a text."""
        place = bisect_left(self._words, text)
        return self._words[place] if place < len(self._words) else ""


class DictionaryPenalty:
    """Takes something off the score of a sequence for each of its words that the dictionary does not have.

    The last word of a sequence that goes on costs only where no word begins with it, so that going on never
    gives back what was taken. Words count in lower case too; numbers and signs cost nothing. It is a
    `Rescore` of best-first search.
    """

    def __init__(
        self, prefixes: DictionaryPrefixes, text_of: Callable[[Sequence[int]], str], penalty: float
    ) -> None:
        """text_of: the text that tokens stand for; penalty: for each word, 0 or more."""
        self._prefixes, self._text_of, self._penalty = prefixes, text_of, penalty

    def __call__(self, tokens: Sequence[int], complete: bool) -> float:
        """What is added to the score."""
        text = self._text_of(tokens)
        if not complete:
            text = text.rstrip(_UNFINISHED)
        wrong = 0
        for match in _WORD.finditer(text):
            growing = not complete and match.end() == len(text)
            wrong += not (self._may_grow(match.group()) if growing else self._has(match.group()))
        return -self._penalty * wrong

    def _has(self, word: str) -> bool:
        word = word.rstrip(_JOINTS)
        return self._prefixes.has(word) or self._prefixes.has(word.lower())

    def _may_grow(self, word: str) -> bool:
        if self._prefixes.begins_one(word) or self._prefixes.begins_one(word.lower()):
            return True
        # A quotation mark may have closed it.
        return word[-1] in _JOINTS and self._has(word)
