"""Merge the corrections of passages with context, and keep only corrections of marked words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice, pairwise

from toolkit.workloads.spelling.data.texts.repairs import differs_in_space
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.inference.chunks import Passage
from toolkit.workloads.spelling.metrics.edits import Edit, edits_between


def joined_corrections(passages: Sequence[Passage], made: Sequence[str]) -> str:
    """Merge the corrections of the passages of a text."""
    text, apart = "", False
    for passage, correction in zip(passages, made, strict=True):
        part, begins_word = _of_core(passage, normalised(correction))
        apart = apart or begins_word
        if part := part.strip():
            text += (" " if text and apart else "") + part
            apart = False
    return text


def joined_words(passages: Sequence[Passage], made: Sequence[str]) -> str:
    """Merge passages of words that were corrected one by one; no word is lost."""
    cores = (
        [passage.kept] if passage.kept is not None else correction.split()[slice(*passage.words)]
        for passage, correction in zip(passages, made, strict=True)
    )
    return " ".join(word for core in cores for word in core)


def _of_core(passage: Passage, made: str) -> tuple[str, bool]:
    """Return the correction of a passage's core, and whether white space precedes it.

    If nothing is left of the core, it stays unchanged.
    """
    if passage.kept is not None:
        return passage.kept, passage.apart
    if passage.core == (0, len(passage.text)):
        return made, passage.apart
    if differs_in_space(passage.text, made):
        first, last = (_place_after(passage.text[:place], made) for place in passage.core)
    else:
        (edits,) = edits_between([passage.text], [made])
        first, last = moved(passage.core, edits, len(passage.text), len(made))
    if not (part := made[first:last].strip()):
        return passage.text[slice(*passage.core)], passage.apart
    apart = passage.apart if first == 0 else made[first - 1] == " " or made[first : first + 1] == " "
    return part, apart


def _place_after(begin: str, text: str) -> int:
    """Return where a text goes on after as many visible characters as `begin` has."""
    count = sum(map(len, begin.split()))
    places = (place for place, character in enumerate(text) if not character.isspace())
    return next(islice(places, count, None), len(text))


def moved(places: Sequence[int], edits: Sequence[Edit], length: int, to: int) -> list[int]:
    """Return the positions of a text's places after its edits. An insertion at a place comes after it.

    places  ascending, up to the length of the text
    length  length of the text
    to      length of the edited text
    """
    found, shift, number = [], 0, 0
    for place in places:
        while number < len(edits) and edits[number].start < place:
            shift += {"insert": 1, "delete": -1, "replace": 0}[edits[number].kind]
            number += 1
        found.append(to if place == length else place + shift)
    return found


def only_marked(text: str, made: str, labels: Sequence[int]) -> str:
    """Return a text in which only marked words are corrected.

    labels  of the words, or a single one for the text: 1 for an error

    Two words become one if either is marked. A marked word stays unchanged if nothing is left of it. Raises
    DataError if the text is too long and too different from its correction to be compared.
    """
    words = text.split()
    if not words or len(labels) != len(words) or all(labels):
        return made if any(labels) else " ".join(words)
    text, made = " ".join(words), normalised(made)
    (edits,) = edits_between([text], [made])
    starts = [0, *accumulate(len(word) + 1 for word in words[:-1])]
    places = [*moved(starts, edits, len(text) + 1, len(made)), len(made)]
    parts = [made[begin:end] for begin, end in pairwise(places)]
    # If the correction changed a word that must stay, it is unknown whether the word was merged with another.
    stays = [
        bool(part.strip()) and (label or part.strip() == word)
        for word, part, label in zip(words, parts, labels, strict=True)
    ]
    found = ""
    for number, (word, part, label) in enumerate(zip(words, parts, labels, strict=True)):
        near = slice(number, number + 2)
        is_joined = any(labels[near]) and all(stays[near]) and not part.endswith(" ")
        found += ((part.strip() if label else "") or word) + ("" if is_joined else " ")
    return normalised(found)


def only_marked_words(text: str, made: str, labels: Sequence[int]) -> str:
    """Like `only_marked`, for a text with words that were corrected one by one: words match by position."""
    words, others = text.split(), made.split()
    marks = labels if len(labels) == len(words) else [any(labels)] * len(words)
    return " ".join(other if mark else word for word, other, mark in zip(words, others, marks, strict=True))
