"""Batches of texts to correct, and texts of what models write; no task itself.

Arrays of tokens are what `spelling_samples` encodes; what is written is what `models.spelling.searching`
finds: for each text its units, a single one of the whole text or one of each of its words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from toolkit.data.lists import Array
from toolkit.models.spelling.batches import NONE, CorrectionBatch, WordsCorrectionBatch
from toolkit.models.spelling.searching import Written
from toolkit.spelling.words import normalised
from toolkit.spelling_samples import layout
from toolkit.tokenization.tokenizer import TextTokenizer

#: In rows of outputs: nothing more; the unit before it has its end; it has none, and so counts for nothing.
_NOTHING, _ENDED, _UNENDED = -1, -2, -3


def on(values: Array, device: torch.device) -> torch.Tensor:
    """An array as a tensor on the device."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)


def text_batch(tokens: Array, lengths: Array, device: torch.device) -> CorrectionBatch:
    """Texts to be written anew.

    tokens   [B, L] special ones included, padded at their ends with the padding token
    lengths  [B]
    """
    lengths = lengths.astype(np.int64)
    return CorrectionBatch(
        tokens=on(tokens, device), lengths=on(lengths, device), real_tokens=int(lengths.sum())
    )


def word_batch(
    tokens: Array, lengths: Array, pieces: Array, words: Array, device: torch.device
) -> WordsCorrectionBatch:
    """Texts whose words are to be written.

    tokens, lengths  as for `text_batch`
    pieces           [B, L] piece of each token; NOBODY for special ones and padding
    words            [B, P] word of each piece, filled up with anything
    """
    lengths = lengths.astype(np.int64)
    nobody = pieces == layout.NOBODY
    of_tokens = np.where(nobody, NONE, np.take_along_axis(words, np.where(nobody, 0, pieces), axis=1))
    return WordsCorrectionBatch(
        tokens=on(tokens, device),
        lengths=on(lengths, device),
        words=on(of_tokens, device),
        real_tokens=int(lengths.sum()),
    )


def pack(written: Sequence[Sequence[Written]], width: int) -> Array:
    """What was written as rows of numbers, [texts, width] float32, filled up with -1.

    Each unit's tokens are followed by a sign. A unit that there is no room for loses them, as one that has
    no end; there must be room for the signs.
    """
    rows = np.full((len(written), width), _NOTHING, dtype=np.float32)
    for row, units in zip(rows, written, strict=True):
        room, numbers = width - len(units), list[int]()
        for unit in units:
            if unit is None or len(unit) > room:
                numbers.append(_UNENDED)
            else:
                room -= len(unit)
                numbers += (*unit, _ENDED)
        row[: len(numbers)] = numbers
    return rows


def unpack(row: Array) -> list[Written]:
    """The units of a row."""
    units: list[Written] = []
    unit: list[int] = []
    for number in row[row != _NOTHING].astype(np.int64).tolist():
        if number >= 0:
            unit.append(number)
        else:
            units.append(tuple(unit) if number == _ENDED else None)
            unit = []
    return units


def text_of(units: Sequence[Written], originals: Sequence[str], tokenizer: TextTokenizer) -> str:
    """The text that was written; a unit without an end stays as it was.

    originals  the text itself, or its words: as many as there are units
    """
    parts = (
        original if unit is None else tokenizer.decode(unit)
        for unit, original in zip(units, originals, strict=True)
    )
    return normalised(" ".join(parts))


def text_targets(outputs: Array, lengths: Array, padding: int, begin: int, end: int) -> tuple[Array, Array]:
    """What a decoder reads and what it should write: two arrays [B, T + 1].

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
    """What a decoder of words reads, the word of each token of it, and what it should write: [B, T].

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
