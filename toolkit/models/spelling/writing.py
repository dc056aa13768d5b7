"""A decoder as a language model that searches can work with: contexts read once, the past kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from toolkit.models.spelling.attention import Memory
from toolkit.models.spelling.decoder import Context, Decoder

#: Keys and values of every context, for each layer.
Memories = list[list[Memory]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderPrefixes:
    """What n sequences have come to.

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
        after = DecoderPrefixes(
            decoder=self.decoder, positions=self.positions + 1, memories=self.memories, past=past
        )
        return scores.float().log_softmax(-1), after

    def take(self, rows: torch.Tensor) -> DecoderPrefixes:
        """Those of these rows [m], which may repeat."""
        rows = rows.to(self.positions.device)
        return DecoderPrefixes(
            decoder=self.decoder,
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
        """All sequences, of which nothing is written."""
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
