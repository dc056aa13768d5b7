"""Attention with cached keys and values, and the layers of a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Keys and values of an attention.

    keys, values  [N, heads, S, d]
    mask          [N, 1, T or 1, S] which keys may be attended to; None: all
    """

    keys: torch.Tensor
    values: torch.Tensor
    mask: torch.Tensor | None = None

    def take(self, rows: torch.Tensor) -> Memory:
        """Return the keys and values of these rows [n]."""
        mask = None if self.mask is None else self.mask[rows]
        return Memory(keys=self.keys[rows], values=self.values[rows], mask=mask)


class Attention(nn.Module):
    """Scaled dot-product attention with several heads (Vaswani et al. 2017)."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self._heads, self._dropout = heads, dropout
        self.queries, self.keys, self.values, self.output = (nn.Linear(size, size) for _ in range(4))
        for each in (self.queries, self.keys, self.values, self.output):
            nn.init.xavier_uniform_(each.weight)
            nn.init.zeros_(each.bias)

    def memory(self, states: torch.Tensor, mask: torch.Tensor | None = None) -> Memory:
        """Keys and values of states [N, S, d]."""
        return Memory(keys=self._cut(self.keys(states)), values=self._cut(self.values(states)), mask=mask)

    def forward(self, states: torch.Tensor, memory: Memory) -> torch.Tensor:
        """Return the attention of states [N, T, d] to a memory, [N, T, d]."""
        read = functional.scaled_dot_product_attention(
            self._cut(self.queries(states)), memory.keys, memory.values,
            attn_mask=memory.mask, dropout_p=self._dropout if self.training else 0.0,
        )  # fmt: skip
        found: torch.Tensor = self.output(read.transpose(1, 2).flatten(2))
        return found

    def _cut(self, vectors: torch.Tensor) -> torch.Tensor:
        cut: torch.Tensor = vectors.unflatten(-1, (self._heads, -1)).transpose(1, 2)
        return cut


class DecoderLayer(nn.Module):
    """Attention to the tokens so far, then to each context, then a perceptron; each part is normalised."""

    def __init__(self, size: int, heads: int, feed_forward: int, dropout: float, contexts: int) -> None:
        super().__init__()
        self.own = Attention(size, heads, dropout)
        self.contexts = nn.ModuleList(Attention(size, heads, dropout) for _ in range(contexts))
        self.feed_forward = nn.Sequential(
            nn.Linear(size, feed_forward), nn.ReLU(), nn.Dropout(dropout), nn.Linear(feed_forward, size)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(contexts + 2))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: torch.Tensor,
        contexts: Sequence[Memory],
        mask: torch.Tensor | None = None,
        past: Memory | None = None,
    ) -> tuple[torch.Tensor, Memory]:
        """Map states [N, T, d]; also return the keys and values of all tokens up to them.

        mask  [N, 1, T, T] which of the states each state may attend to; None: all
        past  keys and values of the previous tokens, which all states attend to
        """
        written = self.own.memory(states, mask)
        if past is not None:
            keys = torch.cat([past.keys, written.keys], dim=2)
            written = Memory(keys=keys, values=torch.cat([past.values, written.values], dim=2))
        states = self.norms[0](states + self.dropout(self.own(states, written)))
        for norm, attention, context in zip(self.norms[1:], self.contexts, contexts, strict=False):
            states = norm(states + self.dropout(attention(states, context)))
        states = self.norms[-1](states + self.dropout(self.feed_forward(states)))
        return states, written
