"""Detection of misspelt words, or of texts with errors, with a transformer."""

from __future__ import annotations

import torch
from torch import nn

from toolkit.workloads.spelling.config.models import DetectionTransformer as Config
from toolkit.workloads.spelling.data.texts.features import FEATURES
from toolkit.workloads.spelling.models.batches import DetectionBatch
from toolkit.workloads.spelling.models.layers import Encoder, TokenEmbedding, group_means, perceptron

CLASSES = 2


class DetectionTransformer(nn.Module):
    """Scores of right and wrong for each word, or for each text.

    The states of a word's tokens are averaged. With features, the states of each piece are averaged first,
    joined with the features of the piece and mixed by a perceptron. Then the pieces of each word, or all
    pieces of the text, are averaged.
    """

    def __init__(self, config: Config, *, vocabulary_size: int, of_texts: bool = False, **_: object) -> None:
        """of_texts: score texts instead of words."""
        super().__init__()
        size = config.hidden_dim
        self._of_texts = of_texts
        self.embedding = TokenEmbedding(vocabulary_size, size, config.dropout)
        self.encoder = Encoder(config.num_layers, size, config.heads, config.feed_forward, config.dropout)
        self.mix = (
            perceptron(size + len(FEATURES), size, size, config.dropout) if config.word_features else None
        )
        self.head = perceptron(size, size, CLASSES, config.dropout)

    def forward(self, rows: torch.Tensor, batch: DetectionBatch) -> torch.Tensor:
        """Scores of these rows [b] of the batch: [b, W, 2] of words, [b, 2] of texts."""
        batch = batch.take(rows)
        states = self.encoder(self.embedding(batch.tokens), batch.real)
        if self.mix is None:
            words = batch.words_of_tokens()
        else:
            pieces = group_means(states, batch.pieces, batch.words.shape[1])
            states, words = self.mix(with_features(pieces, batch.features)), batch.words
        scores: torch.Tensor = self.head(pooled(states, words, batch.word_count, self._of_texts))
        return scores


def with_features(states: torch.Tensor, features: torch.Tensor | None) -> torch.Tensor:
    """Join states [B, P, d] and features [B, P, F]: [B, P, d + F]."""
    assert features is not None
    return torch.cat([states, features.to(states.dtype)], dim=-1)


def pooled(states: torch.Tensor, groups: torch.Tensor, count: int, of_texts: bool) -> torch.Tensor:
    """Means over groups, [B, count, d]; of_texts: over everything that is in a group, [B, d]."""
    if of_texts:
        return group_means(states, groups.clamp(max=0), 1).squeeze(1)
    return group_means(states, groups, count)
