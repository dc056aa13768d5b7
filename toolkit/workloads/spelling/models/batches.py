"""Batches of the spelling study, as tensors on a device; row i of every tensor is text i."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import torch
from torch import nn

#: The group, and the label, of a token that has none: padding, special tokens.
NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """B texts of L tokens, or characters, at most.

    tokens       [B, L] padded at the end, with any number of the vocabulary
    lengths      [B] tokens of each text, without padding
    real_tokens  their sum, for the throughput
    labelled     labels that are learnt: to count them on the device, the host would wait for it
    """

    tokens: torch.Tensor
    lengths: torch.Tensor
    real_tokens: int = 0
    labelled: int = 0

    @property
    def real(self) -> torch.Tensor:
        """Which tokens [B, L] are not padding."""
        return within(self.lengths, self.tokens.shape[1])

    def take(self, rows: torch.Tensor) -> Self:
        """The texts of these rows on the rows' device: what torch's DataParallel does to a batch.

        Widths stay, so that what the devices compute can be joined.
        """
        if len(rows) == len(self.tokens) and rows.device == self.tokens.device:
            return self
        picked = {
            each.name: value.to(rows.device)[rows]
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), torch.Tensor)
        }
        return replace(self, **cast(dict[str, Any], picked))

    def scored_by(self, model: nn.Module) -> Any:
        """A model's outputs for all texts. Rows come first, as DataParallel cuts the first dimension."""
        return model(torch.arange(len(self.tokens), device=self.tokens.device), self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionBatch(Batch):
    """Texts whose words, or which as a whole, have an error or none; numbers ascend within a text.

    pieces      [B, L] piece of each token; NONE for special tokens, spaces and padding
    words       [B, P] word of each piece; NONE where there are no more
    features    [B, P, F] of the pieces; None where the model reads none
    word_count  most words of a text, W
    labels      [B, W] of words, or [B] of texts: 1 for an error; None if unknown
    host_pieces, host_words   pieces and words once more, in the memory of the host, if they are
    """

    pieces: torch.Tensor
    words: torch.Tensor
    features: torch.Tensor | None = None
    word_count: int
    labels: torch.Tensor | None = None
    host_pieces: torch.Tensor | None = None
    host_words: torch.Tensor | None = None

    @property
    def pieces_and_words(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Pieces and words, in the memory of the host if they are there."""
        if self.host_pieces is None or self.host_words is None:
            return self.pieces, self.words
        return self.host_pieces, self.host_words

    def words_of_tokens(self) -> torch.Tensor:
        """Word of each token, [B, L]."""
        found = self.words.gather(1, self.pieces.clamp(min=0))
        return found.masked_fill(self.pieces < 0, NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionBatch(Batch):
    """Texts and their right versions.

    targets  [B, T] what the decoder reads: the beginning sign, then the target
    labels   [B, T] what it should write: the target, then the end sign; NONE for padding
    """

    targets: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsCorrectionBatch(Batch):
    """Texts and what each of their words should be, all words of a text one after the other.

    words         [B, L] word of each token, ascending; NONE for special tokens and padding
    targets       [B, T] what the decoder reads: for each word the beginning sign, then its target
    target_words  [B, T] the word that each of them belongs to; NONE for padding
    labels        [B, T] what it should write: each word's target, then the end sign; NONE for padding
    """

    words: torch.Tensor
    targets: torch.Tensor
    target_words: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairBatch(Batch):
    """Texts as characters.

    labels  [B, L] 0 keep, 1 insert a space before it, 2 delete it; NONE for what is not learnt
    """

    labels: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlusBatch(DetectionBatch):
    """Texts as characters, with the words that they have once white space is repaired.

    A space that is deleted belongs to no piece, nor does one that stays.

    repair_labels                    [B, L] as in `RepairBatch`
    targets, target_words, target_labels  as targets, target_words, labels in `WordsCorrectionBatch`
    """

    labels: torch.Tensor
    repair_labels: torch.Tensor
    targets: torch.Tensor | None = None
    target_words: torch.Tensor | None = None
    target_labels: torch.Tensor | None = None


def within(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """Which of the places [B, width] come before the lengths [B]."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]
