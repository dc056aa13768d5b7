"""DocNN: convolutions over word vectors, pooled over the text.

Kim, "Convolutional Neural Networks for Sentence Classification" (EMNLP 2014), with the layers of
PyText's DocNNRepresentation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import torch
from torch import nn

from toolkit.workloads.text_classification.config import DocNN as DocNNConfig
from toolkit.workloads.text_classification.models.word_vectors import load_vectors


class DocNN(nn.Module):
    """Scores of each class for a batch of texts.

    With V tokens, dimension D, F filters of each width K and C classes: D·V + Σ(D·K·F + F) + F·|K|·C + C
    parameters (D = F = 100, K = 3 and 4, C = 2: 100·V + 70,602).
    """

    def __init__(
        self,
        config: DocNNConfig,
        *,
        vocabulary_size: int,
        labels: Sequence[str],
        pad_id: int,
        tokens: Callable[[], Sequence[str]] = tuple,
        **_: object,
    ) -> None:
        """Create the layers; `tokens` returns the names of the token ids, for `config.vectors`."""
        super().__init__()
        self._pad_id = pad_id
        self._pooling = config.pooling
        self._kernels = config.kernels
        self.embedding = nn.Embedding(vocabulary_size, config.embedding_dim, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        if config.vectors is not None and not self.embedding.weight.is_meta:
            load_vectors(config.vectors, tokens(), self.embedding.weight)
        with torch.no_grad():
            self.embedding.weight[pad_id].zero_()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, config.filters, kernel, padding=kernel)
            for kernel in config.kernels
        )
        self.embedding_dropout = nn.Dropout1d(config.embedding_dropout)
        self.dropout = nn.Dropout(config.dropout)
        self.output = _layers(config.filters * len(config.kernels), config.hidden, len(labels))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map token ids [B, L] to scores [B, C]; padding is at the end of a row."""
        # Dropout1d drops whole channels; in [B, L, D] these are the tokens.
        vectors = self.embedding_dropout(self.embedding(tokens)).transpose(1, 2)
        lengths = (tokens != self._pad_id).sum(1)
        pooled = [
            self._pool(convolution(vectors).relu(), lengths, kernel)
            for convolution, kernel in zip(self.convolutions, self._kernels, strict=True)
        ]
        scores: torch.Tensor = self.output(self.dropout(torch.cat(pooled, 1)))
        return scores

    def _pool(self, features: torch.Tensor, lengths: torch.Tensor, kernel: int) -> torch.Tensor:
        """Pool [B, F, L'] over the positions that overlap the text, so padding has no effect."""
        places = torch.arange(features.shape[2], device=features.device)
        outside = (places[None] >= (lengths + kernel + 1)[:, None])[:, None]
        if self._pooling == "max":
            # After the ReLU, no value is negative, so zeros do not change the maximum.
            return features.masked_fill(outside, 0.0).amax(2)
        if self._pooling == "mean":
            return features.masked_fill(outside, 0.0).sum(2) / (lengths + kernel + 1)[:, None]
        return features.masked_fill(outside, float("-inf")).logsumexp(2)


def _layers(width: int, hidden: tuple[int, ...], classes: int) -> nn.Module:
    sizes = (width, *hidden)
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], classes))
