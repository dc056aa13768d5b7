"""Correction as translation: a text is read, its correction written token by token."""

from __future__ import annotations

import torch
from torch import nn

from toolkit.config.kinds.spelling_models import CorrectionNMT as Config
from toolkit.models.spelling.batches import CorrectionBatch
from toolkit.models.spelling.decoder import Context, Decoder, key_mask
from toolkit.models.spelling.embedding import TokenEmbedding
from toolkit.models.spelling.layers import Encoder
from toolkit.models.spelling.writing import DecoderModel


class CorrectionNMT(nn.Module):
    """Encoder and decoder; input and output may have vocabularies of their own."""

    def __init__(
        self, config: Config, *, vocabulary_size: int, output_vocabulary_size: int | None = None, **_: object
    ) -> None:
        """output_vocabulary_size: that of the input if not given."""
        super().__init__()
        size = config.hidden_dim
        self.embedding = TokenEmbedding(vocabulary_size, size, config.dropout)
        self.encoder = Encoder(
            config.num_encoder_layers, size, config.heads, config.feed_forward, config.dropout
        )
        self.decoder = Decoder(
            output_vocabulary_size or vocabulary_size, size, config.num_decoder_layers, config.heads,
            config.feed_forward, config.dropout,
        )  # fmt: skip

    def forward(self, rows: torch.Tensor, batch: CorrectionBatch) -> torch.Tensor:
        """Scores [b, T, V] of what follows each token that the decoder reads, for these rows [b]."""
        batch = batch.take(rows)
        assert batch.targets is not None
        scores: torch.Tensor = self.decoder(batch.targets, [self._context(batch)])
        return scores

    def reading(self, batch: CorrectionBatch) -> DecoderModel:
        """The batch, read: a language model of one sequence for each text."""
        return DecoderModel(self.decoder, [self._context(batch)])

    def _context(self, batch: CorrectionBatch) -> Context:
        states = self.encoder(self.embedding(batch.tokens), batch.real)
        return Context(states=states, mask=key_mask(batch.lengths, batch.tokens.shape[1]))
