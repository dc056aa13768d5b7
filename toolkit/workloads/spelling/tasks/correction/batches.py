"""Targets of texts to correct, and the texts that models write.

Arrays of tokens come from prepared samples. A `Search` returns units: one for the whole text, or one for
each of its words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toolkit.data.ragged import Array
from toolkit.nlp.decoding.language_model import Limits
from toolkit.task import Ragged
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.samples import SpellingSamples
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.search import Written
from toolkit.workloads.spelling.tasks.correction.lost_words import with_lost_words
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer


def limits_of(tokenizer: TextTokenizer, length: int, lengths: Sequence[int] | None = None) -> Limits:
    """Return the limits of a search with the begin and end token of a tokenizer; see `Limits`."""
    return Limits(begin=tokenizer.begin, end=tokenizer.end, length=length, lengths=lengths)


def ids_of(written: Sequence[Sequence[Written]], end: int) -> Ragged:
    """Return the written token ids, one list per text: each unit, followed by the end token.

    A unit without an end becomes one without tokens.
    """
    return Ragged.of([[token for unit in units for token in (*(unit or ()), end)] for units in written])


def units_of(ids: Array, end: int) -> list[Written]:
    """Return the units of one text from a list of `ids_of`."""
    ends = np.flatnonzero(ids == end)
    return [tuple(unit[:-1].tolist()) for unit in np.split(ids, ends + 1)[:-1]]


def text_of(unit: Written, text: str, tokenizer: TextTokenizer) -> str:
    """Return the written text, with each word that the model left out at its place.

    The text stays unchanged if only white space was written, or if the unit has no end.
    Raises DataError if the written text is too long and too different to be compared with the text.
    """
    return with_lost_words(normalised(text), normalised("" if unit is None else tokenizer.decode(unit)))


def text_of_words(units: Sequence[Written], words: Sequence[str], tokenizer: TextTokenizer) -> str:
    """Return the text of the written words: exactly one for each of these words.

    A word stays unchanged if only white space was written, if its unit has no end, or if the unit has a token
    of unknown text. White space within a word is removed, because it would shift all following words.
    """
    return " ".join(_word_of(unit, word, tokenizer) for unit, word in zip(units, words, strict=True))


def _word_of(unit: Written, word: str, tokenizer: TextTokenizer) -> str:
    if unit is None or tokenizer.unknown in unit:
        return word
    return "".join(tokenizer.decode(unit).split()) or word


def text_targets(outputs: Array, lengths: Array, tokenizer: TextTokenizer) -> tuple[Array, Array]:
    """Return the input of a decoder and the wanted output: two arrays [B, T + 1].

    outputs  [B, T] tokens, padded with NONE
    lengths  [B] number of tokens
    """
    known = outputs != NONE
    targets = np.full((len(outputs), outputs.shape[1] + 1), tokenizer.padding, dtype=np.int64)
    labels = np.full_like(targets, NONE)
    targets[:, 0] = tokenizer.begin
    targets[:, 1:][known] = outputs[known]
    labels[:, :-1][known] = outputs[known]
    labels[np.arange(len(outputs)), lengths] = tokenizer.end
    return targets, labels


def word_targets(outputs: Array, words: Array, tokenizer: TextTokenizer) -> tuple[Array, Array, Array]:
    """Return the input of a decoder of words, the word of each of its tokens, the wanted output: [B, T].

    outputs  [B, O] tokens of all words, padded with NONE
    words    [B, O] word of each token, ascending from 0 without gaps; NONE for padding
    """
    rows, places = np.nonzero(words != NONE)
    of, tokens = words[rows, places], outputs[rows, places]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]) | (of[1:] != of[:-1])
    last = np.append(new[1:], True)[: len(rows)]
    # Before word number w, the input has w begin tokens, and the output w end tokens.
    at = places + of
    shape = (len(outputs), int(at.max(initial=-1)) + 2)
    targets = np.full(shape, tokenizer.padding, dtype=np.int64)
    numbers = np.full(shape, NONE, dtype=np.int64)
    labels = numbers.copy()
    targets[rows[new], at[new]] = tokenizer.begin
    targets[rows, at + 1] = tokens
    numbers[rows[new], at[new]] = of[new]
    numbers[rows, at + 1] = of
    labels[rows, at] = tokens
    labels[rows[last], at[last] + 1] = tokenizer.end
    return targets, numbers, labels


def learnable(samples: SpellingSamples, indices: Array, most: float = math.inf) -> Array:
    """Return which of these texts can be learnt word by word, [n].

    These texts have as many words as their targets. The targets have at most `most` tokens, with an end token
    for each word.
    """
    words = samples.sizes(layout.LABELS, indices)
    targets = samples.lists[layout.OUTPUT_WORDS].lasts(samples.ids[indices], NONE) + 1
    fits: Array = (words == targets) & (samples.sizes(layout.OUTPUTS, indices) + words <= most)
    return fits


def targets_of_words(
    samples: SpellingSamples, indices: Array, tokenizer: TextTokenizer, most: float = math.inf
) -> tuple[Array, Array, Array]:
    """Return the `word_targets` of these texts; texts that are not `learnable` have none."""
    words = samples.rows(layout.OUTPUT_WORDS, indices, NONE)
    words[~learnable(samples, indices, most)] = NONE
    return word_targets(samples.rows(layout.OUTPUTS, indices, NONE), words, tokenizer)
