"""Layers that read: a stack of transformer layers, means over groups, small perceptrons."""

from __future__ import annotations

import torch
from torch import nn


class Encoder(nn.Module):
    """Transformer layers, each normalised at its end (post-norm)."""

    def __init__(
        self, layers: int, size: int, heads: int, feed_forward: int, dropout: float,
        *, activation: str = "relu", final_norm: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        # One by one: nn.TransformerEncoder copies a layer, and all would begin with the same weights.
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                size, heads, feed_forward, dropout, activation=activation, batch_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(size) if final_norm else nn.Identity()

    def forward(self, states: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Map states [B, L, d] to states; real [B, L] says what may be attended to."""
        return self.every(states, real)[-1]

    def every(self, states: torch.Tensor, real: torch.Tensor) -> list[torch.Tensor]:
        """The states after each layer; the last ones normalised."""
        found = []
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=~real)
            found.append(states)
        return [*found[:-1], self.norm(found[-1])]


def group_means(states: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    """Mean of the states [B, L, d] of each of `count` groups, [B, count, d]; zero of an empty one.

    groups  [B, L] numbers below count; below 0 for what is in none
    """
    # A product with zeros and ones, not scattered sums: those add up in any order on a GPU.
    member = (groups[:, None, :] == torch.arange(count, device=groups.device)[:, None]).to(states.dtype)
    means: torch.Tensor = (member @ states) / member.sum(-1, keepdim=True).clamp(min=1)
    return means


def perceptron(inputs: int, hidden: int, outputs: int, dropout: float, layers: int = 2) -> nn.Module:
    """One or two linear layers, with GELU and dropout between."""
    if layers == 1:
        return nn.Linear(inputs, outputs)
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, outputs)
    )
