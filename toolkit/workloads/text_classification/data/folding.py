"""Cutting a text that is too long into fragments, at the ends of sentences, words or tokens.

A word is what is between blanks, with its punctuation, however the tokenizer cuts it. A sentence
ends after . ! ? or … (and the quotes or brackets that close behind it) before a blank, after 。！？ also
without one, and at an empty line; abbreviations such as "Dr." are not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from toolkit.nlp.tokens import Places

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(
    r"""[.!?…]+["'”’»)\]]*\s+|[。！？]+["'”’»)\]』」]*\s*|\n[^\S\n]*\n\s*""",
)

#: Units that are kept whole if they fit, the largest first.
_UNITS: Mapping[str, tuple[str, ...]] = {"wordpiece": (), "word": ("word",), "sentence": ("sentence", "word")}


def fold(text: str, ends: Places, room: int, unit: str) -> list[int]:
    """Cut the n tokens of a text into consecutive fragments of at most `room`: [0, …, n].

    Fragment i holds the tokens from cut i to cut i + 1. Each is filled with as many whole units as it takes;
    a unit longer than a fragment is cut at the next smaller one, at last between tokens.

    ends  [n] where each token ends in the text (code points)
    unit  wordpiece (a token), word or sentence
    """
    # Ascending, even where a tokenizer reorders characters: the search needs that.
    last = np.maximum.accumulate(ends) - 1
    levels = [np.searchsorted(last, _starts(text, each), side="left") for each in _UNITS[unit]]
    return _fill(len(ends), room, levels)


def _starts(text: str, unit: str) -> list[int]:
    """Return where the units of a text begin, perhaps without the first one."""
    if unit == "word":
        return [match.start() for match in _WORD.finditer(text)]
    return [match.end() for match in _SENTENCE_END.finditer(text)]


def _fill(n: int, room: int, levels: Sequence[Places]) -> list[int]:
    """Cut range(n) at the last boundary that fits, of the first level that has one.

    levels  ascending places at which a cut is welcome, the most welcome level first
    """
    cuts = [0]
    while n - cuts[-1] > room:
        first, limit = cuts[-1], cuts[-1] + room
        at = limit
        for places in levels:
            place = int(np.searchsorted(places, limit, side="right")) - 1
            if place >= 0 and places[place] > first:
                at = int(places[place])
                break
        cuts.append(at)
    return [*cuts, n]
