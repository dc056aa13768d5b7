"""Corrections put together: of passages with context, and of words that were marked alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, pairwise

from toolkit.metrics.spelling.edits import Edit, edits_between
from toolkit.spelling.repairs import differs_in_space
from toolkit.spelling.windows import joined
from toolkit.spelling.words import normalised, words_of
from toolkit.spelling_use.passages import Passage


def joined_corrections(passages: Sequence[Passage], made: Sequence[str]) -> str:
    """Return one text of what was made of the passages of a text."""
    parts, apart = [], []
    for passage, correction in zip(passages, made, strict=True):
        part, is_apart = _of_core(passage, normalised(correction))
        parts.append(part)
        apart.append(is_apart)
    return joined(parts, apart)


def _of_core(passage: Passage, made: str) -> tuple[str, bool]:
    """What was made of the core of a passage, and whether white space stands before it."""
    if passage.kept is not None:
        return passage.kept, passage.apart
    if passage.core == (0, len(passage.text)):
        return made, passage.apart
    if differs_in_space(passage.text, made):
        first, last = (_after_letters(made, _letters(passage.text[:place])) for place in passage.core)
    else:
        (edits,) = edits_between([passage.text], [made])
        first, last = moved(passage.core, edits, len(passage.text), len(made))
    apart = passage.apart if first == 0 else made[first - 1] == " " or made[first : first + 1] == " "
    return made[first:last], apart


def _letters(text: str) -> int:
    """How many characters are no white space."""
    return sum(map(len, text.split()))


def _after_letters(text: str, count: int) -> int:
    """Where the next character that is no white space is, after so many of them."""
    places = (place for place, character in enumerate(text) if not character.isspace())
    return next(islice(places, count, None), len(text))


def moved(places: Sequence[int], edits: Sequence[Edit], length: int, to: int) -> list[int]:
    """Return where places of a text are in what edits make of it; what is inserted at one comes after it.

    places  ascending, up to the length of the text
    to      the length of what was made
    """
    found, shift, number = [], 0, 0
    for place in places:
        while number < len(edits) and edits[number].start < place:
            shift += {"insert": 1, "delete": -1, "replace": 0}[edits[number].kind]
            number += 1
        found.append(to if place == length else place + shift)
    return found


def only_marked(text: str, made: str, labels: Sequence[int]) -> str:
    """Return a text in which only marked words are as they were corrected.

    labels  of the words, or a single one for the text: 1 for an error

    Two words become one if either is marked. Raises DataError for a text that is too long and too
    different from what was made of it to be compared.
    """
    words = words_of(text)
    if not words or len(labels) != len(words) or all(labels):
        return made if any(labels) else " ".join(words)
    text, made = " ".join(words), normalised(made)
    (edits,) = edits_between([text], [made])
    starts = [0]
    for word in words[:-1]:
        starts.append(starts[-1] + len(word) + 1)
    places = [*moved(starts, edits, len(text) + 1, len(made)), len(made)]
    parts = [made[begin:end] for begin, end in pairwise(places)]
    # Where a word that is to stay was changed, nobody can say that it was joined with another one.
    stays = [label or part.strip() == word for word, part, label in zip(words, parts, labels, strict=True)]
    found = ""
    for number, (word, part, label) in enumerate(zip(words, parts, labels, strict=True)):
        near = slice(number, number + 2)
        is_joined = any(labels[near]) and all(stays[near]) and not part.endswith(" ")
        found += (part.strip() if label else word) + ("" if is_joined else " ")
    return normalised(found)
