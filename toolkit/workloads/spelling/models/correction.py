"""Correction as translation: an encoder reads a text, a decoder writes the text, or each of its words."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from toolkit.workloads.spelling.models.batches import Batch, CorrectionBatch, WordsCorrectionBatch
from toolkit.workloads.spelling.models.generation.decoder import Context, Decoder, DecoderModel
from toolkit.workloads.spelling.models.generation.word_blocks import (
    block_causal,
    block_cross,
    block_positions,
    blocks_of,
)
from toolkit.workloads.spelling.models.layers import Encoder, TokenEmbedding


class Translation(nn.Module):
    """Encoder and decoder; input and output may have different vocabularies."""

    def __init__(
        self,
        config: Any,
        *,
        vocabulary_size: int,
        output_vocabulary_size: int | None = None,
        contexts: int = 1,
        **_: object,
    ) -> None:
        """output_vocabulary_size: None for the input's; contexts: number of contexts of each layer."""
        super().__init__()
        size = config.hidden_dim
        self.embedding = TokenEmbedding(vocabulary_size, size, config.dropout)
        self.encoder = Encoder(
            config.num_encoder_layers, size, config.heads, config.feed_forward, config.dropout
        )
        self.decoder = Decoder(
            output_vocabulary_size or vocabulary_size, size, config.num_decoder_layers, config.heads,
            config.feed_forward, config.dropout, contexts=contexts,
        )  # fmt: skip

    def _states(self, batch: Batch) -> torch.Tensor:
        """Return the encoder's state of each token, [B, L, d]."""
        states: torch.Tensor = self.encoder(self.embedding(batch.tokens), batch.real)
        return states


class CorrectionNMT(Translation):
    """Reads a text, writes its correction token by token."""

    def forward(self, rows: torch.Tensor, batch: CorrectionBatch) -> torch.Tensor:
        """Scores [b, T, V] of the next token after each input token of the decoder, for these rows [b]."""
        batch = batch.take(rows)
        scores: torch.Tensor = self.decoder(batch.targets, [self._context(batch)])
        return scores

    def reading(self, batch: CorrectionBatch) -> DecoderModel:
        """Encode a batch; return a language model with one sequence for each text."""
        return DecoderModel(self.decoder, [self._context(batch)])

    def _context(self, batch: CorrectionBatch) -> Context:
        return Context(states=self._states(batch), mask=batch.real[:, None])


class CorrectionWordsNMT(Translation):
    """Encoder over the text, decoder over its words.

    In training the words of a text form one sequence. Masks keep each word from attending to the input and
    output tokens of another word. The positions of a word's output count from its first input token. With
    sequence context, another attention reads the whole text.
    """

    def __init__(self, config: Any, **sizes: Any) -> None:
        super().__init__(config, contexts=2 if config.use_sequence_context else 1, **sizes)
        self._with_text = config.use_sequence_context

    def forward(self, rows: torch.Tensor, batch: WordsCorrectionBatch) -> torch.Tensor:
        """Scores [b, T, V] of the next token after each input token of the decoder, for these rows [b]."""
        batch = batch.take(rows)
        states = self._states(batch)
        contexts = [Context(states=states, mask=block_cross(batch.target_words, batch.words))]
        if self._with_text:
            contexts.append(Context(states=states, mask=batch.real[:, None]))
        scores: torch.Tensor = self.decoder(
            batch.targets,
            contexts,
            mask=block_causal(batch.target_words),
            positions=block_positions(batch.target_words, batch.words),
        )
        return scores

    def reading(self, batch: WordsCorrectionBatch) -> tuple[DecoderModel, torch.Tensor]:
        """Encode a batch; return a language model with one sequence for each of N words, and their texts [N].

        Words are separate sequences, so finished words need no more computation.
        """
        states, blocks = self._states(batch), blocks_of(batch.words)
        contexts = [blocks.context(states)]
        if self._with_text:
            contexts.append(Context(states=states[blocks.texts], mask=batch.real[blocks.texts, None]))
        return DecoderModel(self.decoder, contexts, blocks.first), blocks.texts
