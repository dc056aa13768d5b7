"""The model of texts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from toolkit.nlp.tokens import PAD_ID


class Convolutions(nn.Module):
    """Scores of each label for texts."""

    def __init__(self, config, *, vocabulary_size: int, labels: int) -> None:
        super().__init__()
        self.kernels = config.kernels
        self.embedding = nn.Embedding(vocabulary_size, config.embedding_dim, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        vectors = None if config.vectors is None else torch.from_numpy(np.loadtxt(config.vectors))
        with torch.no_grad():
            if vectors is not None:
                self.embedding.weight.copy_(vectors)
            self.embedding.weight[PAD_ID].zero_()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, config.filters, kernel, padding=kernel)
            for kernel in config.kernels
        )
        self.embedding_dropout = nn.Dropout1d(config.embedding_dropout)
        self.dropout = nn.Dropout(config.dropout)
        sizes = [config.filters * len(config.kernels), *config.hidden]
        hidden = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
        self.output = nn.Sequential(*hidden, nn.Linear(sizes[-1], labels))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map tokens [B, L], padded at their ends, to scores [B, labels]."""
        # Dropout1d drops whole channels, which are the tokens here.
        vectors = self.embedding_dropout(self.embedding(tokens)).transpose(1, 2)
        lengths = (tokens != PAD_ID).sum(1)
        features = [
            self._most(convolution(vectors).relu(), lengths + kernel + 1)
            for convolution, kernel in zip(self.convolutions, self.kernels, strict=True)
        ]
        return self.output(self.dropout(torch.cat(features, 1)))

    def _most(self, features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The maximum over the places that touch the text: padding changes nothing."""
        outside = torch.arange(features.shape[2], device=features.device)[None] >= lengths[:, None]
        return features.masked_fill(outside[:, None], 0.0).amax(2)
