"""Building blocks of all models: token embedding, encoder, means over groups, small perceptrons."""

from __future__ import annotations

import math

import torch
from torch import nn

#: Longest wavelength of the sines of positions, divided by 2π (Vaswani et al. 2017, section 3.5).
_LONGEST = 10_000.0


class TokenEmbedding(nn.Module):
    """Learnt vectors of the tokens plus sines of their positions, normalised.

    Vectors are drawn from N(0, 1/d) and scaled by √d. So they have the same weight as the sines, and the same
    table can compute the scores of a decoder's output.
    """

    def __init__(self, vocabulary_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary_size, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor | None = None) -> torch.Tensor:
        """Map tokens [..., L] to vectors [..., L, d]; positions [..., L]; None: counted from 0."""
        if positions is None:
            positions = torch.arange(tokens.shape[-1], device=tokens.device)
        vectors = self.table(tokens) * math.sqrt(self.table.embedding_dim)
        states: torch.Tensor = self.dropout(self.norm(vectors + sines(positions, self.table.embedding_dim)))
        return states

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """Scores of each token [..., V] for states [..., d], computed with the same table."""
        return nn.functional.linear(states, self.table.weight)


def sines(positions: torch.Tensor, size: int) -> torch.Tensor:
    """Sines, then cosines, of positions [...] at falling frequencies: [..., size]; size is even."""
    exponents = torch.arange(0, size, 2, device=positions.device, dtype=torch.float32) / size
    angles = positions.to(torch.float32).unsqueeze(-1) * torch.exp(-math.log(_LONGEST) * exponents)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Encoder(nn.Module):
    """Transformer layers, each normalised at its end (post-norm)."""

    def __init__(
        self, layers: int, size: int, heads: int, feed_forward: int, dropout: float,
        *, activation: str = "relu", final_norm: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        # nn.TransformerEncoder would copy one layer, so all layers would start with the same weights.
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size, heads, feed_forward, dropout, activation=activation, batch_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(size) if final_norm else nn.Identity()

    def forward(self, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Map states [B, L, d] to states; real [B, L]: which states may be attended to."""
        return self.every(states, real)[-1]

    def every(self, states: torch.Tensor, real: torch.Tensor) -> list[torch.Tensor]:
        """Return the states after each layer; the states of the last layer are normalised."""
        found = []
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=~real)
            found.append(states)
        return [*found[:-1], self.norm(found[-1])]


def group_means(states: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    """Mean of the states [B, L, d] of each of `count` groups, [B, count, d]; zero for an empty group.

    groups  [B, L] numbers below count; below 0 for a state in no group
    """
    # Not scattered sums: a GPU adds them in nondeterministic order.
    member = (groups[:, None, :] == torch.arange(count, device=groups.device)[:, None]).to(states.dtype)
    return (member @ states) / member.sum(-1, keepdim=True).clamp(min=1)


def perceptron(inputs: int, hidden: int, outputs: int, dropout: float, layers: int = 2) -> nn.Module:
    """Return one linear layer, or two with GELU and dropout between them."""
    if layers == 1:
        return nn.Linear(inputs, outputs)
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, outputs)
    )
