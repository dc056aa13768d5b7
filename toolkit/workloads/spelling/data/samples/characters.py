"""Texts as single characters, and the repair of their white space."""

from __future__ import annotations

import numpy as np

from toolkit.data.ragged import Array
from toolkit.workloads.spelling.data.samples.layout import UNKNOWN
from toolkit.workloads.spelling.data.texts.repairs import differs_in_space, repairs_of
from toolkit.workloads.spelling.data.texts.words import words_of


def repaired_text(text: str, target: str | None, labels: object, spaced: str | None) -> str | None:
    """Return a text with the right white space; None if that is not known.

    target  the right text; None if there are only `labels` of its words
    spaced  the text before noise changed its white space; None if no noise did
    """
    if spaced is not None:
        return spaced
    if target is None or labels is not None:
        return text
    if differs_in_space(text, target):
        return target
    # Texts with the same number of words have the same words, some of them misspelt.
    return text if len(words_of(text)) == len(words_of(target)) else None


def repair_labels(text: str, repaired: str | None, is_known: bool) -> Array:
    """Return the repair of each token of a text, special tokens included: [L]; UNKNOWN where not known."""
    found = np.full(len(text) + 2, UNKNOWN, dtype=np.uint8)
    if repaired is not None and is_known:
        found[1:-1] = repairs_of(text, repaired)
    return found
