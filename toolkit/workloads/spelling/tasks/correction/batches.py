"""Targets of texts to correct, and texts of what models write.

Arrays of tokens are those of prepared samples. What is written is what a `Search` finds: for each text its
units, a single one of the whole text or one of each of its words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolkit.data.ragged import Array
from toolkit.nlp.decoding.language_model import Limits
from toolkit.task import Ragged
from toolkit.workloads.spelling.data.texts.words import normalised, words_of
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.search import Written
from toolkit.workloads.spelling.tasks.correction.lost_words import with_lost_words
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer


def limits_of(tokenizer: TextTokenizer, length: int, lengths: Sequence[int] | None = None) -> Limits:
    """Return the limits of what is written with the signs of a tokenizer; see `Limits`."""
    return Limits(begin=tokenizer.begin, end=tokenizer.end, length=length, lengths=lengths)


def ids_of(written: Sequence[Sequence[Written]], end: int) -> Ragged:
    """Token ids of what was written, one list per text: each unit with the end token behind it.

    A unit that has no end is as one of no tokens.
    """
    return Ragged.of([[token for unit in units for token in (*(unit or ()), end)] for units in written])


def units_of(ids: Array, end: int) -> list[Written]:
    """The units of one text of `ids_of`."""
    ends = np.flatnonzero(ids == end)
    return [tuple(unit[:-1].tolist()) for unit in np.split(ids, ends + 1)[:-1]]


def text_of(unit: Written, text: str, tokenizer: TextTokenizer) -> str:
    """Return the text that was written, with each word that was left out at its place.

    Where nothing but white space was written, or no end, it is the text itself.
    Raises DataError if what was written is too long and too different to be compared with the text.
    """
    return with_lost_words(normalised(text), normalised("" if unit is None else tokenizer.decode(unit)))


def text_of_words(units: Sequence[Written], words: Sequence[str], tokenizer: TextTokenizer) -> str:
    """Return the text of the words that were written: exactly one in the place of each of these words.

    A word stays as it was if only white space was written, or no end. White space within a
    word is left out: it would move all words that follow.
    """
    return " ".join(_word_of(unit, word, tokenizer) for unit, word in zip(units, words, strict=True))


def _word_of(unit: Written, word: str, tokenizer: TextTokenizer) -> str:
    return "".join(words_of("" if unit is None else tokenizer.decode(unit))) or word


def text_targets(outputs: Array, lengths: Array, padding: int, begin: int, end: int) -> tuple[Array, Array]:
    """Return the input of a decoder and its target: two arrays [B, T + 1].

    outputs  [B, T] tokens, filled up with NONE
    lengths  [B] of them
    """
    known = outputs != NONE
    targets = np.full((len(outputs), outputs.shape[1] + 1), padding, dtype=np.int64)
    labels = np.full_like(targets, NONE)
    targets[:, 0] = begin
    targets[:, 1:][known] = outputs[known]
    labels[:, :-1][known] = outputs[known]
    labels[np.arange(len(outputs)), lengths] = end
    return targets, labels


def word_targets(
    outputs: Array, words: Array, padding: int, begin: int, end: int
) -> tuple[Array, Array, Array]:
    """Return the input of a decoder of words, the word of each of its tokens, and its target: [B, T].

    outputs  [B, O] tokens of all words, filled up with NONE
    words    [B, O] the word of each, ascending from 0 without a gap; NONE where there are no more
    """
    rows, places = np.nonzero(words != NONE)
    of, tokens = words[rows, places], outputs[rows, places]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]) | (of[1:] != of[:-1])
    last = np.append(new[1:], True)[: len(rows)]
    # Before word number w the decoder has read w beginning signs, and written w end signs.
    at = places + of
    shape = (len(outputs), int(at.max(initial=-1)) + 2)
    targets, numbers = np.full(shape, padding, dtype=np.int64), np.full(shape, NONE, dtype=np.int64)
    labels = numbers.copy()
    targets[rows[new], at[new]] = begin
    targets[rows, at + 1] = tokens
    numbers[rows[new], at[new]] = of[new]
    numbers[rows, at + 1] = of
    labels[rows, at] = tokens
    labels[rows[last], at[last] + 1] = end
    return targets, numbers, labels
