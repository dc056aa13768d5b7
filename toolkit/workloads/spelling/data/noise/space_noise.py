"""Noise that changes white space, or cuts texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from toolkit.workloads.spelling.config.noise import WhitespaceNoise
from toolkit.workloads.spelling.data.noise.noise import Sample
from toolkit.workloads.spelling.data.texts.words import normalised


def respaced(sample: Sample, noise: WhitespaceNoise, random: np.random.Generator) -> Sample:
    """Return the sample with spaces of its text removed and inserted."""
    text = normalised(sample.text)
    spaced = text if sample.spaced is None else sample.spaced
    return replace(sample, text=_respaced(text, noise, random), spaced=spaced)


def _respaced(text: str, noise: WhitespaceNoise, random: np.random.Generator) -> str:
    of_text = random.random()
    if of_text < noise.none:
        return text.replace(" ", "")
    if of_text < noise.none + noise.every:
        return " ".join(text.replace(" ", ""))
    draws = random.random(len(text)).tolist()
    made = (
        ("" if draw < noise.delete else " ")
        if character == " "
        else (character + " " if draw < noise.insert and following not in ("", " ") else character)
        for character, following, draw in zip(text, [*text[1:], ""], draws, strict=True)
    )
    return "".join(made)


def part_of(sample: Sample, most: int, random: np.random.Generator) -> Sample:
    """Cut a text that is too long: keep consecutive words, chosen at random, and their targets.

    most  characters that a text may have; if every word is longer, the shortest word is kept

    Text and target must have the same number of words.
    """
    if len(sample.text) <= most:
        return sample
    words = (sample.text if sample.spaced is None else sample.spaced).split()
    places = _places(words, sample.text)
    first, last = _choose(places, most, random)
    return replace(
        sample,
        text=sample.text[places[first][0] : places[last][1]],
        target=_part(sample.target, first, last, len(words)),
        clean=None if sample.clean is None else _part(sample.clean, first, last, len(words)),
        spaced=None if sample.spaced is None else " ".join(words[first : last + 1]),
    )


def _choose(places: Sequence[tuple[int, int]], most: int, random: np.random.Generator) -> tuple[int, int]:
    """Return the first and the last word of the part, which is as long as possible."""
    fitting = [place for place, (a, b) in enumerate(places) if b - a <= most]
    if not fitting:
        shortest = min(range(len(places)), key=lambda place: places[place][1] - places[place][0])
        return shortest, shortest
    early = [place for place in fitting if places[place][0] <= places[-1][1] - most] or fitting[:1]
    first = early[int(random.random() * len(early))]
    ends = [b for _, b in places]
    return first, int(np.searchsorted(ends, places[first][0] + most, side="right")) - 1


def _places(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return start and end of each word in a text with the same characters and possibly other spaces."""
    visible = [place for place, character in enumerate(text) if not character.isspace()]
    ends = list(accumulate(map(len, words)))
    assert ends[-1] == len(visible), "only white space may differ"
    return [(visible[b - len(word)], visible[b - 1] + 1) for word, b in zip(words, ends, strict=True)]


def _part(text: str, first: int, last: int, count: int) -> str:
    words = text.split()
    assert len(words) == count, "no noise changes the number of words"
    return " ".join(words[first : last + 1])
