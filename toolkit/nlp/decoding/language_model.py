"""The interface between a search and a model, and the results of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch


class Prefixes(Protocol):
    """The state of n sequences: all that a model needs to extend them."""

    def advance(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Self]:
        """Append a token [n] to each; log-probabilities [n, V] of the next one, and the new prefixes."""

    def take(self, rows: torch.Tensor) -> Self:
        """Those of these rows [m], which may repeat."""


class LanguageModel(Protocol):
    """Writes several sequences, each given its own input, which has been read before."""

    def __len__(self) -> int:
        """Sequences, N."""

    def begin(self) -> Prefixes:
        """All sequences, still empty, without the beginning sign."""

    def after(self, rows: torch.Tensor, prefixes: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [n, V] after whole prefixes.

        rows      [n] which input each of them belongs to
        prefixes  [n, T] padded at the end, the beginning sign included
        lengths   [n] of the prefixes
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Signs and bounds of a search.

    begin, end  the signs before and after a sequence
    length      most tokens that are written, the end sign included
    lengths     the same of each input, where some get fewer
    """

    begin: int
    end: int
    length: int
    lengths: Sequence[int] | None = None

    def of(self, row: int) -> int:
        """Return the most tokens that are written for an input."""
        return self.length if self.lengths is None else min(self.length, self.lengths[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A sequence that a search has found.

    tokens           without the signs before and after
    log_probability  of the sequence, with the end sign where it is complete
    complete         whether the end sign was written before the limit
    """

    tokens: tuple[int, ...]
    log_probability: float
    complete: bool

    @property
    def written(self) -> int:
        """Tokens that were written, the end sign included."""
        return len(self.tokens) + self.complete
