"""Detection and correction on top of a model that repairs white space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from toolkit.workloads.spelling.config.models import TokenizationRepair as RepairConfig
from toolkit.workloads.spelling.config.models import TokenizationRepairPlus as Config
from toolkit.workloads.spelling.data.texts.features import FEATURES
from toolkit.workloads.spelling.models.batches import NONE, Batch, DetectionBatch, RepairPlusBatch
from toolkit.workloads.spelling.models.detection import CLASSES, with_features
from toolkit.workloads.spelling.models.generation.decoder import Context, Decoder, DecoderModel, readable
from toolkit.workloads.spelling.models.generation.word_blocks import (
    block_causal,
    block_cross,
    block_positions,
    blocks_of,
    first_places,
)
from toolkit.workloads.spelling.models.layers import Encoder, group_means, perceptron, sines
from toolkit.workloads.spelling.models.repair import TokenizationRepair

#: Number of the last layers of the characters' encoder that are mixed.
MIXED_LAYERS = 3


class PlusScores(NamedTuple):
    """The scores of a batch; a tuple, because torch's DataParallel can join tuples from several devices.

    words    [b, W, 2] right or wrong
    repair   [b, L, 3] as in `TokenizationRepair`
    written  [b, T, V] next token after each input token of the decoder; None without a decoder
    """

    words: torch.Tensor
    repair: torch.Tensor
    written: torch.Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _States:
    """Scores of the repair [b, L, 3], states of characters [b, L, d], pieces [b, P, d], words [b, W, d]."""

    repair: torch.Tensor
    characters: torch.Tensor
    pieces: torch.Tensor
    words: torch.Tensor


class TokenizationRepairPlus(nn.Module):
    """Scores of the words of a text with possibly wrong white space, and their corrections.

    The states of the repair model's last layers are mixed with learnt shares, and averaged over each piece of
    a word. An encoder over the pieces reads them, together with the features of the pieces. An optional
    decoder writes all words at once, each from its own characters and pieces.

    Sizes are equal to those of the repair model, so that its trained weights can be loaded.
    """

    def __init__(
        self, config: Config, *, repair: RepairConfig, vocabulary_size: int,
        output_vocabulary_size: int | None = None, **_: object,
    ) -> None:  # fmt: skip
        """repair: section of the repair model; vocabulary_size: number of its characters."""
        super().__init__()
        size, heads = repair.hidden_dim, repair.heads
        inner = config.feed_forward_dim or 2 * size
        self._fixed = config.fix_tokenization_repair
        self.repair = TokenizationRepair(repair, vocabulary_size=vocabulary_size).requires_grad_(
            not self._fixed
        )
        self.shares = nn.Parameter(torch.zeros(min(MIXED_LAYERS, repair.num_encoder_layers)))
        more = len(FEATURES) if config.word_features else 0
        self._with_features = config.word_features
        self.mix = perceptron(size + more, size, size, config.dropout)
        self.norm = nn.LayerNorm(size)
        self.words = Encoder(config.num_word_layers, size, heads, inner, config.dropout)
        self.head = perceptron(size, size, CLASSES, config.dropout)
        self.decoder: Decoder | None = None
        if config.num_sec_layers:
            assert output_vocabulary_size is not None
            self.decoder = Decoder(
                output_vocabulary_size, size, config.num_sec_layers, heads, inner, config.dropout, contexts=2
            )

    def train(self, mode: bool = True) -> TokenizationRepairPlus:
        """Switch to training mode; a fixed repair model stays without dropout."""
        super().train(mode)
        if self._fixed:
            self.repair.eval()
        return self

    def forward(self, rows: torch.Tensor, batch: RepairPlusBatch) -> PlusScores:
        """Return the scores of these rows [b] of the batch."""
        batch = batch.take(rows)
        states = self._states(batch)
        written = self._written(batch, states) if self.decoder is not None else None
        return PlusScores(words=self.head(states.words), repair=states.repair, written=written)

    def reading(self, batch: DetectionBatch) -> tuple[DecoderModel, torch.Tensor]:
        """Encode a batch; return a language model with one sequence for each word, and their texts [N]."""
        assert self.decoder is not None
        states = self._states(batch)
        words = batch.words_of_tokens()
        characters, pieces = blocks_of(words), blocks_of(batch.words)
        contexts = [characters.context(states.characters), pieces.context(states.pieces)]
        return DecoderModel(self.decoder, contexts, characters.first), characters.texts

    def repairs(self, batch: Batch) -> torch.Tensor:
        """Scores of the repair [B, L, 3]; they do not need words."""
        layers = self._characters(batch)
        scores: torch.Tensor = self.repair.head(layers[-1])
        return scores

    def labels(self, batch: DetectionBatch) -> torch.Tensor:
        """Return the scores of the words [B, W, 2], without the decoder."""
        scores: torch.Tensor = self.head(self._states(batch).words)
        return scores

    def _characters(self, batch: Batch) -> list[torch.Tensor]:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self._fixed):
            layers: list[torch.Tensor] = self.repair.characters(batch.tokens, batch.real)
        return layers

    def _states(self, batch: DetectionBatch) -> _States:
        layers = self._characters(batch)
        shares = self.shares.softmax(0)
        characters = torch.stack(
            [share * states for share, states in zip(shares, layers[::-1], strict=False)]
        ).sum(0)
        pieces = group_means(characters, batch.pieces, batch.words.shape[1])
        if self._with_features:
            pieces = with_features(pieces, batch.features)
        places = first_places(batch.pieces, batch.words.shape[1])
        pieces = self.norm(self.mix(pieces) + sines(places, characters.shape[-1]))
        pieces = self.words(pieces, readable(batch.words != NONE))
        return _States(
            repair=self.repair.head(layers[-1]),
            characters=characters,
            pieces=pieces,
            words=group_means(pieces, batch.words, batch.word_count),
        )

    def _written(self, batch: RepairPlusBatch, states: _States) -> torch.Tensor:
        assert self.decoder is not None
        assert batch.targets is not None
        assert batch.target_words is not None
        words = batch.words_of_tokens()
        contexts = [
            Context(states=states.characters, mask=block_cross(batch.target_words, words)),
            Context(states=states.pieces, mask=block_cross(batch.target_words, batch.words)),
        ]
        scores: torch.Tensor = self.decoder(
            batch.targets,
            contexts,
            mask=block_causal(batch.target_words),
            positions=block_positions(batch.target_words, words),
        )
        return scores
