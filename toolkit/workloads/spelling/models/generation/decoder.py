"""Decoders map the tokens written so far, and contexts, to scores of the next token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import torch
from torch import nn

from toolkit.workloads.spelling.models.generation.attention import DecoderLayer, Memory
from toolkit.workloads.spelling.models.layers import TokenEmbedding

#: Keys and values of each context, by layer.
Memories: TypeAlias = list[list[Memory]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """States that a decoder attends to.

    states  [N, S, d]
    mask    [N, T or 1, S] which states each token of the output may attend to
    """

    states: torch.Tensor
    mask: torch.Tensor


class Decoder(nn.Module):
    """Decoder layers; the embedding table of the tokens also scores the next token."""

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

        mask       [N, T, T] which tokens each token may attend to; None: itself and those before it
        positions  [N, T]; None: counted from 0
        """
        if mask is None:
            mask = causal(tokens.shape[1], tokens.device)[None]
        states, _ = self.states(tokens, positions, self.memories(contexts), mask=mask)
        return self.embedding.scores(states)

    def memories(self, contexts: Sequence[Context]) -> Memories:
        """Return the keys and values of the contexts for each layer; constant while tokens are written."""
        pairs = [(context.states, readable(context.mask)[:, None]) for context in contexts]
        return [
            [attention.memory(*pair) for attention, pair in zip(layer.contexts, pairs, strict=True)]
            for layer in cast(Iterable[Any], self.layers)
        ]

    def states(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor | None,
        memories: Memories,
        *,
        mask: torch.Tensor | None = None,
        past: Sequence[Memory] | None = None,
    ) -> tuple[torch.Tensor, list[Memory]]:
        """States [N, T, d] after tokens [N, T]; also the keys and values of all tokens up to them, by layer.

        mask  [N, T, T] which of these tokens each token may attend to; None: all
        past  keys and values of the previous tokens, by layer
        """
        states: torch.Tensor = self.embedding(tokens, positions)
        mask = None if mask is None else mask[:, None]
        written = []
        for place, (layer, contexts) in enumerate(zip(self.layers, memories, strict=True)):
            states, own = layer(states, contexts, mask, None if past is None else past[place])
            written.append(own)
        return states, written


def causal(width: int, device: torch.device) -> torch.Tensor:
    """Mask [T, T]: each place may attend to itself and to the places before it."""
    return torch.ones(width, width, dtype=torch.bool, device=device).tril()


def readable(mask: torch.Tensor) -> torch.Tensor:
    """Return a mask [..., S] in which rows that allow nothing are changed to allow everything.

    These rows are padding, and their scores are ignored. Attention over nothing would give NaN.
    """
    return mask | ~mask.any(-1, keepdim=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderPrefixes:
    """The prefixes of n sequences.

    positions  [n] position of the next token
    past       keys and values of the tokens so far, by layer; None before the first token
    """

    decoder: Decoder
    positions: torch.Tensor
    memories: Memories
    past: list[Memory] | None

    def advance(self, tokens: torch.Tensor) -> tuple[torch.Tensor, DecoderPrefixes]:
        """Append a token [n] to each prefix; return next log-probabilities [n, V], and the new prefixes."""
        tokens = tokens.to(self.positions.device)
        states, past = self.decoder.states(
            tokens[:, None], self.positions[:, None], self.memories, past=self.past
        )
        scores = self.decoder.embedding.scores(states.squeeze(1))
        return scores.float().log_softmax(-1), replace(self, positions=self.positions + 1, past=past)

    def take(self, rows: torch.Tensor) -> DecoderPrefixes:
        """Return the prefixes of these rows [m], which may repeat."""
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
        """first: position [N] of each sequence's first token; None: 0. Masks of contexts are [N, 1, S]."""
        states = contexts[0].states
        self._decoder = decoder
        self._first = states.new_zeros(len(states), dtype=torch.long) if first is None else first
        self._memories = decoder.memories(contexts)

    def __len__(self) -> int:
        return len(self._first)

    def begin(self) -> DecoderPrefixes:
        """Return the empty prefixes of all sequences."""
        return DecoderPrefixes(
            decoder=self._decoder, positions=self._first, memories=self._memories, past=None
        )

    def after(self, rows: torch.Tensor, prefixes: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [n, V] after prefixes [n, T] of these lengths [n], for these inputs [n]."""
        rows, prefixes, lengths = (each.to(self._first.device) for each in (rows, prefixes, lengths))
        width = prefixes.shape[1]
        positions = self._first[rows][:, None] + torch.arange(width, device=rows.device)
        mask = causal(width, rows.device)[None]
        states, _ = self._decoder.states(prefixes, positions, _taken(self._memories, rows), mask=mask)
        last = states[torch.arange(len(rows), device=rows.device), lengths - 1]
        return self._decoder.embedding.scores(last).float().log_softmax(-1)


def _taken(memories: Memories, rows: torch.Tensor) -> Memories:
    return [[each.take(rows) for each in layer] for layer in memories]
