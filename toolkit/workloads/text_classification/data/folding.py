"""Cut texts that are too long into fragments, at the ends of sentences, words or tokens.

A word is the text between blanks, including punctuation, even if the tokenizer cuts it. A sentence ends after
. ! ? or … and closing quotes or brackets, if a blank follows; after 。！？ also without a blank; and at an
empty line. Abbreviations such as "Dr." are not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from toolkit.nlp.tokens import NUMBER, Pieces, Places

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"""[.!?…]+["'”’»)\]]*\s+|[。！？]+["'”’»)\]』」]*\s*|\n[^\S\n]*\n\s*""")

#: Units that are kept whole if they fit, the largest first.
_UNITS: Mapping[str, tuple[str, ...]] = {"wordpiece": (), "word": ("word",), "sentence": ("sentence", "word")}


class TextSample(NamedTuple):
    """A sample of one of several texts: place of that text, start and end in it (code points), tokens.

    tokens  bytes of NUMBER, without special tokens
    """

    place: int
    start: int
    stop: int
    tokens: bytes


def cut_into_samples(texts: Sequence[str], pieces: Pieces, room: int, unit: str) -> Iterator[TextSample]:
    """Yield the samples of texts, in their order.

    room  most tokens of a sample, without special tokens
    unit  none: a longer text is cut at its end; else it is folded
    """
    size = NUMBER.itemsize
    long = [place for place, numbers in enumerate(pieces.numbers) if len(numbers) > room * size]
    spans = iter(pieces.spans(long) if unit != "none" else ())
    for place, (text, numbers) in enumerate(zip(texts, pieces.numbers, strict=True)):
        if unit == "none" or len(numbers) <= room * size:
            yield TextSample(place, 0, len(text), numbers[: room * size])
            continue
        starts, ends = next(spans)
        for a, b in pairwise(fold(text, ends, room, unit)):
            start, stop = _without_blanks(text, int(starts[a]), int(ends[b - 1]))
            yield TextSample(place, start, stop, numbers[a * size : b * size])


def _without_blanks(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return a part's start and end without the blanks around it: some tokens begin with a blank."""
    own = text[start:stop].lstrip()
    return stop - len(own), stop - len(own) + len(own.rstrip())


def fold(text: str, ends: Places, room: int, unit: str) -> list[int]:
    """Cut the n tokens of a text into consecutive fragments of at most `room`: [0, …, n].

    Fragment i has the tokens from cut i to cut i + 1. Each fragment has as many whole units as fit. A unit
    longer than a fragment is cut at the next smaller unit, and finally between tokens.

    ends  [n] where each token ends in the text (code points)
    unit  wordpiece (a token), word or sentence
    """
    # The search needs ascending places, and some tokenizers reorder characters.
    last = np.maximum.accumulate(ends) - 1
    # Places where a cut is preferred, the most preferred kind first.
    levels = [np.searchsorted(last, _starts(text, each), side="left") for each in _UNITS[unit]]
    cuts = [0]
    while len(ends) - cuts[-1] > room:
        at = limit = cuts[-1] + room
        # The last boundary that fits, of the first level that has one.
        for places in levels:
            place = int(np.searchsorted(places, limit, side="right")) - 1
            if place >= 0 and places[place] > cuts[-1]:
                at = int(places[place])
                break
        cuts.append(at)
    return [*cuts, len(ends)]


def _starts(text: str, unit: str) -> list[int]:
    """Return the starts of the units of a text; the first unit may be missing."""
    if unit == "word":
        return [match.start() for match in _WORD.finditer(text)]
    return [match.end() for match in _SENTENCE_END.finditer(text)]
