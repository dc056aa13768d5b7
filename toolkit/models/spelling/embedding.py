"""Vectors of tokens and of their places."""

from __future__ import annotations

import math

import torch
from torch import nn

#: Longest wavelength of the places' sines over 2π (Vaswani et al. 2017, section 3.5).
_LONGEST = 10_000.0


class TokenEmbedding(nn.Module):
    """Learnt vectors of the tokens plus sines of their places, normalised.

    Vectors are drawn from N(0, 1/d) and scaled by √d, so that they weigh as much as the sines while the same
    table can give the scores of a decoder's output.
    """

    def __init__(self, vocabulary_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary_size, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        """Map tokens [..., L] to vectors [..., L, d]; without positions [..., L] they count from 0."""
        if positions is None:
            positions = torch.arange(tokens.shape[-1], device=tokens.device)
        vectors = self.table(tokens) * math.sqrt(self.table.embedding_dim)
        states: torch.Tensor = self.dropout(self.norm(vectors + sines(positions, self.table.embedding_dim)))
        return states

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """Scores of every token [..., V] as the output of states [..., d]: the table is tied."""
        return nn.functional.linear(states, self.table.weight)


def sines(positions: torch.Tensor, size: int) -> torch.Tensor:
    """Sines, then cosines, of places [...] at falling frequencies: [..., size]; size is even."""
    exponents = torch.arange(0, size, 2, device=positions.device, dtype=torch.float32) / size
    angles = positions.to(torch.float32).unsqueeze(-1) * torch.exp(-math.log(_LONGEST) * exponents)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
