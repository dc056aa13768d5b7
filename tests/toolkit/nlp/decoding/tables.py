"""Language models that are tables: small enough to look at every sequence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from toolkit.nlp.decoding.language_model import Limits

BEGIN, END = 0, 1


@dataclass(frozen=True, slots=True)
class TablePrefixes:
    """Prefixes as they are written out."""

    model: TableModel
    rows: torch.Tensor
    written: list[tuple[int, ...]]

    def advance(self, tokens: torch.Tensor) -> tuple[torch.Tensor, TablePrefixes]:
        written = [(*path, token) for path, token in zip(self.written, tokens.tolist(), strict=True)]
        scores = [self.model.scores(row, path) for row, path in zip(self.rows.tolist(), written, strict=True)]
        return torch.stack(scores), TablePrefixes(self.model, self.rows, written)

    def take(self, rows: torch.Tensor) -> TablePrefixes:
        return TablePrefixes(self.model, self.rows[rows], [self.written[row] for row in rows.tolist()])


class TableModel:
    """Log-probabilities drawn from (seed, input, prefix), so that what comes next depends on all before.

    sharpness  how far they are from equal
    """

    def __init__(self, inputs: int, vocabulary: int, seed: int, sharpness: float = 1.0) -> None:
        self._inputs, self._vocabulary, self._seed, self._sharpness = inputs, vocabulary, seed, sharpness

    def __len__(self) -> int:
        return self._inputs

    def begin(self) -> TablePrefixes:
        return TablePrefixes(self, torch.arange(self._inputs), [()] * self._inputs)

    def after(self, rows: torch.Tensor, prefixes: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        paths = [
            tuple(path[:length]) for path, length in zip(prefixes.tolist(), lengths.tolist(), strict=True)
        ]
        return torch.stack([self.scores(row, path) for row, path in zip(rows.tolist(), paths, strict=True)])

    def scores(self, row: int, path: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self._seed, row, path)))
        drawn = torch.randn(self._vocabulary, generator=generator) * self._sharpness
        drawn[BEGIN] = -torch.inf
        return drawn.log_softmax(0)

    def every(self, row: int, limits: Limits) -> Iterator[tuple[float, tuple[int, ...], bool]]:
        """Every sequence within the limits: its log-probability, its tokens, whether it is complete."""
        letters = [token for token in range(self._vocabulary) if token not in (BEGIN, END)]
        for length in range(limits.length + 1):
            for tokens in itertools.product(letters, repeat=length):
                total = sum(
                    float(self.scores(row, (BEGIN, *tokens[:place]))[token])
                    for place, token in enumerate(tokens)
                )
                if length < limits.length:
                    yield total + float(self.scores(row, (BEGIN, *tokens))[END]), tokens, True
                else:
                    yield total, tokens, False
