"""Repair of white space: an operation for each character of a text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from toolkit.workloads.spelling.data.texts.words import normalised

#: Operations on a character: keep it; insert a space before it; delete it, if it is white space.
KEEP, INSERT, DELETE = range(3)


def differs_in_space(text: str, other: str) -> bool:
    """Whether two texts differ at most in white space."""
    return "".join(text.split()) == "".join(other.split())


def spaces_in(text: str) -> frozenset[int]:
    """Return the places of white space within the text, as the number of visible characters before each."""
    return frozenset(list(accumulate(map(len, text.split())))[:-1])


def repairs_of(text: str, target: str) -> list[int]:
    """Return the operation on each character of a text; together they turn it into the target.

    The target must have the same characters, apart from white space.
    """
    assert differs_in_space(text, target)
    wanted = spaces_in(target)
    found, count, spaced = [], 0, False
    for character in text:
        is_wanted = count in wanted and not spaced
        spaced = character.isspace()
        if spaced:
            found.append(KEEP if is_wanted else DELETE)
        else:
            found.append(INSERT if is_wanted else KEEP)
            count += 1
    return found


def repaired_text(text: str, target: str | None, labels: object, spaced: str | None) -> str | None:
    """Return a text with the right white space; None if that is not known.

    target  the right text; None if there are only `labels` of its words
    spaced  the text before noise changed its white space; None if it was not changed
    """
    if spaced is not None:
        return spaced
    if target is None or labels is not None:
        return text
    if differs_in_space(text, target):
        return target
    # Texts with the same number of words have the same words, some of them misspelt.
    return text if len(text.split()) == len(target.split()) else None


def repaired(text: str, repairs: Sequence[int]) -> str:
    """Apply the operations to a text; they change only white space."""
    made = (
        f" {character}" if repair == INSERT else "" if repair == DELETE and character == " " else character
        for character, repair in zip(text, repairs, strict=True)
    )
    return normalised("".join(made))
