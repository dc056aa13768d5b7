"""Repair of white space: what is done with each character of a text, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from toolkit.spelling.words import normalised

#: What may be done with a character: nothing; put a space before it; remove it, if it is white space.
KEEP, INSERT, DELETE = range(3)


def differs_in_space(text: str, other: str) -> bool:
    """Whether white space is all that two texts may differ in."""
    return "".join(text.split()) == "".join(other.split())


def repairs_of(text: str, target: str) -> list[int]:
    """Return what to do with each character of a text so that it becomes a target of the same characters."""
    assert differs_in_space(text, target)
    # After how many characters the target has white space.
    wanted = frozenset(list(accumulate(map(len, target.split())))[:-1])
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
    """Return a text with its white space repaired; nothing else is changed, whatever the repairs say."""
    made = (
        f" {character}" if repair == INSERT else "" if repair == DELETE and character == " " else character
        for character, repair in zip(text, repairs, strict=True)
    )
    return normalised("".join(made))
