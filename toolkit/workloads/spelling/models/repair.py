"""Repair of white space: an action for each character."""

from __future__ import annotations

import torch
from torch import nn

from toolkit.workloads.spelling.config.models import TokenizationRepair as Config
from toolkit.workloads.spelling.data.texts.repairs import DELETE, INSERT, KEEP
from toolkit.workloads.spelling.models.batches import RepairBatch
from toolkit.workloads.spelling.models.layers import Encoder, TokenEmbedding, perceptron

#: Actions on a character.
CLASSES = len((KEEP, INSERT, DELETE))


class CharacterEncoder(nn.Module):
    """Maps characters to the states of each layer; `TokenizationRepairPlus` uses them, too."""

    def __init__(self, config: Config, vocabulary_size: int) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocabulary_size, config.hidden_dim, config.dropout)
        self.encoder = Encoder(
            config.num_encoder_layers, config.hidden_dim, config.heads, config.feed_forward, config.dropout,
            activation=config.activation, final_norm=config.final_norm,
        )  # fmt: skip

    def forward(self, tokens: torch.Tensor, real: torch.Tensor) -> list[torch.Tensor]:
        """Map characters [B, L] to the states [B, L, d] of each layer, in the order of the layers."""
        return self.encoder.every(self.embedding(tokens), real)


class TokenizationRepair(nn.Module):
    """Scores of keep, insert and delete for each character."""

    def __init__(self, config: Config, *, vocabulary_size: int, **_: object) -> None:
        super().__init__()
        self.characters = CharacterEncoder(config, vocabulary_size)
        size = config.hidden_dim
        self.head = perceptron(size, size, CLASSES, config.dropout, config.head_layers)

    def forward(self, rows: torch.Tensor, batch: RepairBatch) -> torch.Tensor:
        """Scores [b, L, 3] of the characters of these rows [b]."""
        batch = batch.take(rows)
        scores: torch.Tensor = self.head(self.characters(batch.tokens, batch.real)[-1])
        return scores
