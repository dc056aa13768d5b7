"""The interface between a search and a model, and the results of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch


class Prefixes(Protocol):
    """The state of n sequences: all that a model needs to extend them."""

    def advance(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Self]:
        """Append a token [n] to each; return log-probabilities [n, V] of the next, and the new prefixes."""

    def take(self, rows: torch.Tensor) -> Self:
        """Return the prefixes of these rows [m], which may repeat."""


class LanguageModel(Protocol):
    """Writes several sequences, each for its own input, which the model has already read."""

    def __len__(self) -> int:
        """Number of sequences, N."""

    def begin(self) -> Prefixes:
        """All sequences, still empty, without the beginning sign."""

    def after(self, rows: torch.Tensor, prefixes: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Log-probabilities [n, V] after whole prefixes.

        rows      [n] the input of each prefix
        prefixes  [n, T] padded at the end, the beginning sign included
        lengths   [n] of the prefixes
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Signs and bounds of a search.

    begin, end  the signs before and after a sequence
    length      most tokens that are written, the end sign included
    lengths     the same for each input, if some have a lower limit
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

    tokens           tokens without the signs before and after
    log_probability  that of the sequence, including the end sign if it is complete
    complete         whether the end sign was written before the limit
    """

    tokens: tuple[int, ...]
    log_probability: float
    complete: bool

    @property
    def written(self) -> int:
        """Tokens that were written, the end sign included."""
        return len(self.tokens) + self.complete
