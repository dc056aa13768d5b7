"""Words of a text, which white space separates, and the pieces of a word, which punctuation does."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: From letter or digit to letter or digit, or punctuation: `("don't!` is `("`, `don't`, `!`.
_PIECE = re.compile(r"\w\S+\w|\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text: letters and digits with what joins them, or a run of punctuation.

    characters   start and exclusive end in the text
    space_after  whether white space follows
    """

    text: str
    characters: tuple[int, int]
    space_after: bool


def normalised(text: str) -> str:
    """Return a text whose words one space separates, with none around them."""
    return " ".join(text.split())


def words_of(text: str) -> list[str]:
    """Return what stands between white space."""
    return text.split()


def pieces_of(text: str) -> list[Piece]:
    """Split a text, or a word, into its pieces; together they have all of its characters but white space."""
    return [
        Piece(
            text=match.group(),
            characters=match.span(),
            space_after=text[match.end() : match.end() + 1].isspace(),
        )
        for match in _PIECE.finditer(text)
    ]


def word_labels(text: str, target: str) -> list[int]:
    """Return 1 for each word of a text that differs from the target's word at its place, else 0.

    A word that the target has none for is an error: labels are as many as the text has words.
    """
    words, golds = words_of(text), words_of(target)
    missing = len(words) - len(golds)
    return [int(word != gold) for word, gold in zip(words, golds, strict=False)] + [1] * missing
