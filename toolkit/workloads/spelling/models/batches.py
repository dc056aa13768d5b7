"""Batches of the spelling study, as tensors on a device; row i of each tensor is text i."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self, cast

import torch
from torch import nn

#: Marks a missing number, such as the piece or the label of padding.
NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """B texts of at most L tokens or characters.

    tokens       [B, L] padded at the end with any token
    lengths      [B] number of tokens of each text, without padding
    real_tokens  sum of the lengths, for the throughput
    labelled     number of labels in the loss, counted on the host, so that it does not wait for the device
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
        """Return the texts of these rows, on the device of the rows. torch's DataParallel divides batches so.

        Widths stay the same, so that the outputs of several devices can be joined.
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
        """Return a model's outputs for all texts. DataParallel divides the first argument, the rows."""
        return model(torch.arange(len(self.tokens), device=self.tokens.device), self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionBatch(Batch):
    """Texts with pieces and words, and labels of words or texts. Pieces and words ascend within a text.

    pieces      [B, L] piece of each token; NONE for special tokens, spaces and padding
    words       [B, P] word of each piece; NONE for padding
    features    [B, P, F] features of the pieces; None if the model reads none
    word_count  largest number of words of a text, W
    labels      [B, W] of words, or [B] of texts: 1 for an error; None if unknown
    real_words  which labels are of real words (all False: unknown); None without labels
    host_pieces, host_words   copies of pieces and words in host memory, or None
    """

    pieces: torch.Tensor
    words: torch.Tensor
    features: torch.Tensor | None = None
    word_count: int
    labels: torch.Tensor | None = None
    real_words: torch.Tensor | None = None
    host_pieces: torch.Tensor | None = None
    host_words: torch.Tensor | None = None

    def words_of_tokens(self) -> torch.Tensor:
        """Word of each token, [B, L]."""
        found = self.words.gather(1, self.pieces.clamp(min=0))
        return found.masked_fill(self.pieces < 0, NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionBatch(Batch):
    """Texts and their corrections. A unit is a text, or each of its words, one after the other.

    targets  [B, T] input of the decoder: for each unit the begin token, then its target
    labels   [B, T] wanted output: for each unit its target, then the end token; NONE for padding
    """

    targets: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsCorrectionBatch(CorrectionBatch):
    """Texts and the corrections of each of their words.

    words         [B, L] word of each token, ascending; NONE for special tokens and padding
    target_words  [B, T] word of each token of `targets`; NONE for padding
    """

    words: torch.Tensor
    target_words: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairBatch(Batch):
    """Texts as characters.

    labels  [B, L] 0 keep, 1 insert a space before it, 2 delete it; NONE if unknown
    """

    labels: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlusBatch(DetectionBatch):
    """Texts as characters, with their words after white space is repaired. Spaces have no piece.

    repair_labels                         [B, L] like labels in `RepairBatch`
    targets, target_words, target_labels  like targets, target_words, labels in `WordsCorrectionBatch`
    """

    labels: torch.Tensor
    repair_labels: torch.Tensor
    targets: torch.Tensor | None = None
    target_words: torch.Tensor | None = None
    target_labels: torch.Tensor | None = None


def within(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """Return which places [B, width] are before the lengths [B]."""
    return torch.arange(width, device=lengths.device) < lengths[:, None]
