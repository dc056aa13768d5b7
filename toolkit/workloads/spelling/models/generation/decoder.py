"""Decoders: they map the tokens written so far, and contexts, to scores of the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import torch
from torch import nn

from toolkit.workloads.spelling.models.generation.attention import DecoderLayer, Memory
from toolkit.workloads.spelling.models.layers import TokenEmbedding

#: Keys and values of every context, for each layer.
Memories: TypeAlias = list[list[Memory]]


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

    def memories(self, contexts: Sequence[Context]) -> Memories:
        """Keys and values of the contexts for each layer, which stay the same while it writes."""
        pairs = [(context.states, readable(context.mask)[:, None]) for context in contexts]
        return [cast(DecoderLayer, layer).memories(pairs) for layer in self.layers]

    def _states(
        self,
        tokens: torch.Tensor,
        memories: Memories,
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
        memories: Memories,
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
        memories: Memories,
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
    """A mask [..., S] in which rows that may read nothing may read everything.

    Such rows are padding, whose scores are ignored; attention over nothing would give NaN.
    """
    return mask | ~mask.any(-1, keepdim=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderPrefixes:
    """The prefixes of n sequences so far.

    positions  [n] of the next token
    past       keys and values of what was written, for each layer; None before the first token
    """

    decoder: Decoder
    positions: torch.Tensor
    memories: Memories
    past: list[Memory] | None

    def advance(self, tokens: torch.Tensor) -> tuple[torch.Tensor, DecoderPrefixes]:
        """Append a token [n] to each; log-probabilities [n, V] of the next one, and the new prefixes."""
        tokens = tokens.to(self.positions.device)
        scores, past = self.decoder.step(tokens, self.positions, self.memories, self.past)
        after = replace(self, positions=self.positions + 1, past=past)
        return scores.float().log_softmax(-1), after

    def take(self, rows: torch.Tensor) -> DecoderPrefixes:
        """Those of these rows [m], which may repeat."""
        rows = rows.to(self.positions.device)
        return replace(
            self,
            positions=self.positions[rows],
            memories=_taken(self.memories, rows),
            past=None if self.past is None else [each.take(rows) for each in self.past],
        )


class DecoderModel:
    """A decoder with the contexts of N sequences."""

    def __init__(
        self, decoder: Decoder, contexts: Sequence[Context], first: torch.Tensor | None = None
    ) -> None:
        """first: position [N] of each sequence's first token, 0 if not given; masks are [N, 1, S]."""
        states = contexts[0].states
        self._decoder = decoder
        self._first = states.new_zeros(len(states), dtype=torch.long) if first is None else first
        self._memories = decoder.memories(contexts)

    def __len__(self) -> int:
        return len(self._first)

    def begin(self) -> DecoderPrefixes:
        """All sequences, still empty."""
        return DecoderPrefixes(
            decoder=self._decoder, positions=self._first, memories=self._memories, past=None
        )

    def after(self, rows: torch.Tensor, prefixes: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [n, V] after whole prefixes [n, T] of these lengths [n], of these inputs [n]."""
        rows, prefixes, lengths = (each.to(self._first.device) for each in (rows, prefixes, lengths))
        memories = _taken(self._memories, rows)
        scores = self._decoder.after(prefixes, lengths, self._first[rows], memories)
        return scores.float().log_softmax(-1)


def _taken(memories: Memories, rows: torch.Tensor) -> Memories:
    return [[each.take(rows) for each in layer] for layer in memories]
