"""Repair of white space: an operation for each character of a text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from toolkit.workloads.spelling.data.texts.words import normalised

#: Operations: nothing; insert a space before a character; delete it, if it is white space.
KEEP, INSERT, DELETE = range(3)


def differs_in_space(text: str, other: str) -> bool:
    """Whether two texts differ at most in white space."""
    return "".join(text.split()) == "".join(other.split())


def spaces_in(text: str) -> frozenset[int]:
    """Return after how many characters there is white space, that around the text left out."""
    return frozenset(list(accumulate(map(len, text.split())))[:-1])


def repairs_of(text: str, target: str) -> list[int]:
    """Return the operation of each character that turns a text into a target of the same characters."""
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


def repaired(text: str, repairs: Sequence[int]) -> str:
    """Apply the operations to a text; only white space is ever changed."""
    made = (
        f" {character}" if repair == INSERT else "" if repair == DELETE and character == " " else character
        for character, repair in zip(text, repairs, strict=True)
    )
    return normalised("".join(made))
