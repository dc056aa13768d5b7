"""Words of a text, separated by white space, and pieces of a word, separated by punctuation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from toolkit.errors import DataError

#: From a letter or digit to a letter or digit, or a run of punctuation: `("don't!` is `("`, `don't`, `!`.
PIECE = re.compile(r"\w\S+\w|\w+|[^\w\s]+")


class Piece(NamedTuple):
    """Part of a text: letters and digits with the signs between them, or a run of punctuation.

    characters   start and exclusive end in the text
    """

    text: str
    characters: tuple[int, int]


def normalised(text: str) -> str:
    """Return a text with one space between words and none around them."""
    return " ".join(text.split())


def pieces_of(text: str) -> list[Piece]:
    """Split a text or a word into its pieces. Together, they have all characters except white space."""
    return [Piece(match.group(), match.span()) for match in PIECE.finditer(text)]


def word_labels(text: str, target: str) -> list[int]:
    """Return for each word of a text 1 if it differs from the target's word at the same position, else 0.

    Words beyond the end of the target are errors.
    """
    words, golds = text.split(), target.split()
    return [int(word != gold) for word, gold in zip_longest(words, golds[: len(words)])]


def parse_labels(line: str, where: str, counts: Sequence[int], what: str) -> list[int]:
    """Return the labels in a line.

    where   names the line in a message
    counts  how many labels the line may have
    what    what each label is for, as a part of the message

    Raises DataError.
    """
    cells = line.split()
    if wrong := [cell for cell in cells if cell not in ("0", "1")]:
        raise DataError(f"{where}: found {wrong[0][:40]!r}, expected 0 (right) and 1 (wrong) only")
    if len(cells) not in counts:
        raise DataError(f"{where}: found {len(cells)} labels, expected {counts[0]}: {what}")
    return [*map(int, cells)]


def parse_labels_of(text: str, line: str, where: str) -> list[int]:
    """Return the labels of a text: of its words, or a single one. Raises DataError as `parse_labels`."""
    return parse_labels(line, where, (len(text.split()), 1), "one for each word, or one for the text")
