"""Batches of texts whose white space is to be repaired, and what models say of them; no task itself.

Texts are characters with a special token before and behind them, as `spelling_samples` encodes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from toolkit.data.lists import Array
from toolkit.models.spelling.batches import NONE, RepairBatch, RepairPlusBatch
from toolkit.spelling.repairs import DELETE, INSERT, KEEP, repaired
from toolkit.spelling_samples import layout
from toolkit.tasks.correction_batches import on

#: Output where a text has no more characters, or words.
NOTHING = -1.0


def repair_batch(
    tokens: Array, lengths: Array, device: torch.device, repairs: Array | None = None
) -> RepairBatch:
    """Texts to be repaired.

    tokens   [B, L] special ones included, padded at their ends
    lengths  [B]
    repairs  [B, L] what is to be done; UNKNOWN where that is not known
    """
    lengths = lengths.astype(np.int64)
    return RepairBatch(
        tokens=on(tokens, device),
        lengths=on(lengths, device),
        labels=None if repairs is None else known_labels(repairs, device),
        real_tokens=int(lengths.sum()),
    )


def plus_batch(
    tokens: Array,
    lengths: Array,
    pieces: Array,
    words: Array,
    device: torch.device,
    *,
    features: Array | None = None,
    word_count: int,
) -> RepairPlusBatch:
    """Texts with the words that they have once white space is repaired, without labels.

    tokens, lengths  as for `repair_batch`
    pieces           [B, L] piece of each token; NOBODY for special ones, spaces and padding
    words            [B, P] word of each piece; NONE where there are no more
    features         [B, P, F] of the pieces; None where the model reads none
    word_count       most words of a text
    """
    lengths = lengths.astype(np.int64)
    return RepairPlusBatch(
        tokens=on(tokens, device),
        lengths=on(lengths, device),
        pieces=on(np.where(pieces == layout.NOBODY, NONE, pieces), device),
        words=on(words, device),
        features=None if features is None else on(features, device),
        word_count=max(word_count, 1),
        real_tokens=int(lengths.sum()),
    )


def known_labels(labels: Array, device: torch.device) -> torch.Tensor:
    """Labels of prepared samples as a model's: NONE where they are not known."""
    return on(np.where(labels == layout.UNKNOWN, NONE, labels), device)


def classes_of(scores: torch.Tensor, lengths: torch.Tensor, width: int) -> torch.Tensor:
    """What to do with each character of texts, [B, width]; NOTHING where there are no more.

    scores   [B, L, 3] of the tokens
    lengths  [B] tokens of each text, special ones included
    """
    classes = scores[:, 1:].argmax(-1).float()
    places = torch.arange(classes.shape[1], device=classes.device)
    classes = classes.masked_fill(places >= lengths[:, None] - 2, NOTHING)
    return padded(classes, width)


def padded(rows: torch.Tensor, width: int) -> torch.Tensor:
    """Rows filled up with NOTHING, or cut where nothing else stands, to [B, width]."""
    found = rows.new_full((len(rows), width), NOTHING)
    most = min(rows.shape[1], width)
    found[:, :most] = rows[:, :most]
    return found


def repaired_by(text: str, row: Array) -> str:
    """Return a text with its white space repaired as a row of `classes_of` says; others are left alone."""
    classes: Sequence[int] = row[row != NOTHING].astype(int).tolist()
    return repaired(text, classes) if len(classes) == len(text) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairCounts:
    """Spaces that were inserted and deleted against those that had to be, of each text [B].

    found, wrong, missed  true and false positives, false negatives
    known                 texts of which it is known what had to be done
    """

    found: torch.Tensor
    wrong: torch.Tensor
    missed: torch.Tensor
    known: torch.Tensor

    @property
    def sums(self) -> torch.Tensor:
        """Over the texts: found, wrong, missed, texts, their F1, texts without a fault; [6] float64."""
        faults = self.wrong + self.missed
        # Nothing to do and nothing done is right: 1.
        twice = 2 * self.found.double()
        f1 = torch.where(twice + faults == 0, 1.0, twice / (twice + faults).clamp(min=1))
        facts = [self.found, self.wrong, self.missed, self.known, f1 * self.known, self.known & (faults == 0)]
        return torch.stack([fact.double().sum() for fact in facts])


#: What `RepairCounts.sums` adds up.
REPAIR_SUMS = ("inserted_or_deleted", "too_many", "too_few", "repaired_texts", "f1_of_texts", "equal_texts")


def repair_counts(classes: torch.Tensor, labels: torch.Tensor, spaces: torch.Tensor) -> RepairCounts:
    """Compare what is done to texts with what had to be, by the texts that come of both.

    So deleting a letter or doubling a space, which change nothing, count for nothing.

    classes  [B, L] what is done with each token
    labels   [B, L] what had to be; NONE of special tokens, and where that is not known
    spaces   [B, L] which tokens are spaces
    """
    known = labels != NONE
    before = _space_before(torch.full_like(classes, KEEP), spaces)
    done = before ^ _space_before(classes, spaces)
    wanted = before ^ _space_before(labels, spaces)
    inner = known & ~spaces
    # Around a text there is no space: the first token is special, the second one begins the text.
    inner[:, :2] = False
    pairs = (done & wanted, done & ~wanted, wanted & ~done)
    found, wrong, missed = ((pair & inner).sum(1) for pair in pairs)
    return RepairCounts(found=found, wrong=wrong, missed=missed, known=known.any(1))


def _space_before(classes: torch.Tensor, spaces: torch.Tensor) -> torch.Tensor:
    """Whether a space stands before each token when that is done, [B, L]."""
    found = classes == INSERT
    found[:, 1:] |= (spaces & (classes != DELETE))[:, :-1]
    return found
