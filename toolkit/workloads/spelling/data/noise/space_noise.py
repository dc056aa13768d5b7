"""Noise that changes white space, or cuts texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from toolkit.workloads.spelling.data.noise.noise import Sample
from toolkit.workloads.spelling.data.texts.words import normalised, words_of


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitespaceNoise:
    """Removes and inserts spaces.

    none    share of texts that lose all spaces
    every   share of texts with a space between any two characters
    insert  in the other texts, probability of a new space between two characters
    delete  in the other texts, probability that a space is lost
    """

    none: float = 0.1
    every: float = 0.1
    insert: float = 0.1
    delete: float = 0.5

    def apply(self, sample: Sample, random: np.random.Generator) -> Sample:
        """Return the sample with the spaces of its text changed."""
        text = normalised(sample.text)
        spaced = text if sample.spaced is None else sample.spaced
        return replace(sample, text=self._respaced(text, random), spaced=spaced)

    def _respaced(self, text: str, random: np.random.Generator) -> str:
        of_text = random.random()
        if of_text < self.none:
            return text.replace(" ", "")
        if of_text < self.none + self.every:
            return " ".join(text.replace(" ", ""))
        draws = random.random(len(text)).tolist()
        made = (
            ("" if draw < self.delete else " ")
            if character == " "
            else (character + " " if draw < self.insert and following not in ("", " ") else character)
            for character, following, draw in zip(text, [*text[1:], ""], draws, strict=True)
        )
        return "".join(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Substring:
    """Cuts longer texts: keeps consecutive words, chosen at random, and those of the target.

    max_characters  longest text; if every word is longer, a single one stays
    """

    max_characters: int

    def apply(self, sample: Sample, random: np.random.Generator) -> Sample:
        """Return the sample, cut if it is too long. Text and target must have equally many words."""
        if len(sample.text) <= self.max_characters:
            return sample
        words = words_of(sample.text if sample.spaced is None else sample.spaced)
        places = _places(words, sample.text)
        first, last = self._choose(places, random)
        return replace(
            sample,
            text=sample.text[places[first][0] : places[last][1]],
            target=_part(sample.target, first, last, len(words)),
            clean=None if sample.clean is None else _part(sample.clean, first, last, len(words)),
            spaced=None if sample.spaced is None else " ".join(words[first : last + 1]),
        )

    def _choose(self, places: Sequence[tuple[int, int]], random: np.random.Generator) -> tuple[int, int]:
        """The first and the last word that are kept: as long a part as possible."""
        fitting = [place for place, (a, b) in enumerate(places) if b - a <= self.max_characters]
        if not fitting:
            shortest = min(range(len(places)), key=lambda place: places[place][1] - places[place][0])
            return shortest, shortest
        latest = places[-1][1] - self.max_characters
        early = [place for place in fitting if places[place][0] <= latest] or fitting[:1]
        first = early[int(random.random() * len(early))]
        ends = [b for _, b in places]
        limit = places[first][0] + self.max_characters
        return first, int(np.searchsorted(ends, limit, side="right")) - 1


def _places(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Start and end of each word in a text with the same characters, but maybe different spaces."""
    visible = [place for place, character in enumerate(text) if not character.isspace()]
    ends = list(accumulate(map(len, words)))
    assert ends[-1] == len(visible), "white space is all that may differ"
    return [(visible[b - len(word)], visible[b - 1] + 1) for word, b in zip(words, ends, strict=True)]


def _part(text: str, first: int, last: int, count: int) -> str:
    words = words_of(text)
    assert len(words) == count, "no noise changes the number of words"
    return " ".join(words[first : last + 1])
