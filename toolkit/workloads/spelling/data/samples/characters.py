"""Encode texts as single characters, with the words that they have once white space is repaired."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from toolkit.data.ragged import Array
from toolkit.workloads.spelling.data.samples.layout import NO_PIECE, UNKNOWN
from toolkit.workloads.spelling.data.texts.repairs import differs_in_space, repairs_of
from toolkit.workloads.spelling.data.texts.words import pieces_of, words_of
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer

#: Distinct words whose pieces are cached.
_REMEMBERED = 1 << 18


@dataclass(frozen=True, slots=True)
class CharacterTokens:
    """Encodes texts with a tokenizer of characters, and finds the piece of each character."""

    tokenizer: TextTokenizer

    def of(self, text: str, words: list[str]) -> tuple[Array, Array]:
        """Return the tokens of a text, special tokens around them, and the piece of each token; [L], [L].

        words  those of the text with its white space repaired; they have the same characters
        """
        own: list[int] = []
        before = 0
        for word in words:
            pieces, count = _pieces(word)
            own += [before + piece for piece in pieces]
            before += count
        characters = self.tokenizer.encode(text)
        assert len(characters) == len(text)
        tokens = np.empty(len(text) + 2, dtype=np.uint32)
        tokens[0], tokens[1:-1], tokens[-1] = self.tokenizer.begin, characters, self.tokenizer.end
        found = np.full(len(tokens), NO_PIECE, dtype=np.int64)
        found[1:-1][visible(text)] = own
        return tokens, found


@lru_cache(_REMEMBERED)
def _pieces(word: str) -> tuple[list[int], int]:
    """Return the piece of each character of a word, and the number of pieces."""
    spans = [piece.characters for piece in pieces_of(word)]
    return [number for number, (start, end) in enumerate(spans) for _ in range(start, end)], len(spans)


def visible(text: str) -> npt.NDArray[np.bool_]:
    """Return which characters of a text are not white space, [characters]."""
    return np.array([not character.isspace() for character in text], dtype=bool)


def repaired_text(text: str, target: str | None, labels: object, spaced: str | None) -> str | None:
    """Return a text with the right white space; None if that is not known.

    target  the right text; None if there are only `labels` of its words
    spaced  the text before noise changed its white space; None if no noise did
    """
    if spaced is not None:
        return spaced
    if target is None or labels is not None:
        return text
    if differs_in_space(text, target):
        return target
    # Texts with the same number of words have the same words, some of them misspelt.
    return text if len(words_of(text)) == len(words_of(target)) else None


def repair_labels(text: str, repaired: str | None, is_known: bool) -> Array:
    """Return the repair of each token of a text, special tokens included: [L]; UNKNOWN where not known."""
    found = np.full(len(text) + 2, UNKNOWN, dtype=np.uint8)
    if repaired is not None and is_known:
        found[1:-1] = repairs_of(text, repaired)
    return found
