"""A decoder: what it has written and some contexts in, scores of the next token out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn

from toolkit.models.spelling.attention import DecoderLayer, Memory
from toolkit.models.spelling.batches import within
from toolkit.models.spelling.embedding import TokenEmbedding


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """States that a decoder attends to.

    states  [N, S, d]
    mask    [N, T or 1, S] which of them may be attended to, from where in the output
    """

    states: torch.Tensor
    mask: torch.Tensor


class Decoder(nn.Module):
    """Decoder layers; the table of the tokens that it reads also scores those that it writes."""

    def __init__(
        self, vocabulary_size: int, size: int, layers: int, heads: int, feed_forward: int, dropout: float,
        *, contexts: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = TokenEmbedding(vocabulary_size, size, dropout)
        self.layers = nn.ModuleList(
            DecoderLayer(size, heads, feed_forward, dropout, contexts) for _ in range(layers)
        )

    def forward(
        self,
        tokens: torch.Tensor,
        contexts: Sequence[Context],
        *,
        mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scores [N, T, V] of the token after each of the tokens [N, T].

        mask       [N, T, T] which tokens may read which; None: those before them
        positions  [N, T]; None: they count from 0
        """
        if mask is None:
            mask = causal(tokens.shape[1], tokens.device)[None]
        states = self._states(tokens, self.memories(contexts), mask, positions)
        return self.embedding.scores(states)

    def memories(self, contexts: Sequence[Context]) -> list[list[Memory]]:
        """Keys and values of the contexts for each layer, which stay the same while it writes."""
        pairs = [(context.states, readable(context.mask)[:, None]) for context in contexts]
        return [cast(DecoderLayer, layer).memories(pairs) for layer in self.layers]

    def _states(
        self,
        tokens: torch.Tensor,
        memories: list[list[Memory]],
        mask: torch.Tensor,
        positions: torch.Tensor | None,
    ) -> torch.Tensor:
        states: torch.Tensor = self.embedding(tokens, positions)
        for layer, contexts in zip(self.layers, memories, strict=True):
            states, _ = layer(states, contexts, mask[:, None])
        return states

    def step(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        memories: list[list[Memory]],
        past: Sequence[Memory] | None,
    ) -> tuple[torch.Tensor, list[Memory]]:
        """Scores [N, V] after one more token [N] at positions [N], and the past that it is part of."""
        states = self.embedding(tokens[:, None], positions[:, None])
        written = []
        for place, (layer, contexts) in enumerate(zip(self.layers, memories, strict=True)):
            states, own = layer(states, contexts, None, None if past is None else past[place])
            written.append(own)
        return self.embedding.scores(states.squeeze(1)), written

    def after(
        self,
        prefixes: torch.Tensor,
        lengths: torch.Tensor,
        first: torch.Tensor,
        memories: list[list[Memory]],
    ) -> torch.Tensor:
        """Scores [N, V] after whole prefixes [N, T] of these lengths [N], which begin at positions [N]."""
        width = prefixes.shape[1]
        positions = first[:, None] + torch.arange(width, device=prefixes.device)
        mask = causal(width, prefixes.device)[None]
        states = self._states(prefixes, memories, mask, positions)
        last = states[torch.arange(len(states), device=states.device), lengths - 1]
        return self.embedding.scores(last)


def causal(width: int, device: torch.device) -> torch.Tensor:
    """Which places [T, T] each place may read: itself and those before it."""
    return torch.ones(width, width, dtype=torch.bool, device=device).tril()


def readable(mask: torch.Tensor) -> torch.Tensor:
    """A mask [..., S] in which a row that may read nothing reads everything.

    Such rows are padding, whose scores nobody looks at; attention over nothing would be no number.
    """
    return mask | ~mask.any(-1, keepdim=True)


def key_mask(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """Mask [N, 1, S] of what comes before the lengths [N]."""
    return within(lengths, width)[:, None]
