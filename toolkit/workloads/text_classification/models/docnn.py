"""DocNN: convolutions over word vectors, pooled over the text.

Kim, "Convolutional Neural Networks for Sentence Classification" (EMNLP 2014), with the layers of
PyText's DocNNRepresentation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import DocNN as DocNNConfig


class DocNN(nn.Module):
    """Scores of each class for a batch of texts.

    With V tokens, dimension D, F filters of each width K and C classes: D·V + Σ(D·K·F + F) + F·|K|·C + C
    parameters (D = F = 100, K = 3 and 4, C = 2: 100·V + 70,602).
    """

    def __init__(
        self,
        config: DocNNConfig,
        *,
        vocabulary_size: int,
        labels: Sequence[str],
        pad_id: int,
        tokens: Callable[[], Sequence[str]] = tuple,
        **_: object,
    ) -> None:
        """Create the layers; `tokens` returns the names of the token ids, for `config.vectors`."""
        super().__init__()
        self._pad_id = pad_id
        self._pooling = config.pooling
        self._kernels = config.kernels
        self.embedding = nn.Embedding(vocabulary_size, config.embedding_dim, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        if config.vectors is not None and not self.embedding.weight.is_meta:
            load_vectors(config.vectors, tokens(), self.embedding.weight)
        with torch.no_grad():
            self.embedding.weight[pad_id].zero_()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, config.filters, kernel, padding=kernel)
            for kernel in config.kernels
        )
        self.embedding_dropout = nn.Dropout1d(config.embedding_dropout)
        self.dropout = nn.Dropout(config.dropout)
        self.output = _layers(config.filters * len(config.kernels), config.hidden, len(labels))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Map token ids [B, L] to scores [B, C]; padding is at the end of a row."""
        # Dropout1d drops whole channels; in [B, L, D] these are the tokens.
        vectors = self.embedding_dropout(self.embedding(tokens)).transpose(1, 2)
        lengths = (tokens != self._pad_id).sum(1)
        pooled = [
            self._pool(convolution(vectors).relu(), lengths, kernel)
            for convolution, kernel in zip(self.convolutions, self._kernels, strict=True)
        ]
        scores: torch.Tensor = self.output(self.dropout(torch.cat(pooled, 1)))
        return scores

    def _pool(self, features: torch.Tensor, lengths: torch.Tensor, kernel: int) -> torch.Tensor:
        """Pool [B, F, L'] over the positions that overlap the text, so padding has no effect."""
        places = torch.arange(features.shape[2], device=features.device)
        outside = (places[None] >= (lengths + kernel + 1)[:, None])[:, None]
        if self._pooling == "max":
            # After the ReLU, no value is negative, so zeros do not change the maximum.
            return features.masked_fill(outside, 0.0).amax(2)
        if self._pooling == "mean":
            return features.masked_fill(outside, 0.0).sum(2) / (lengths + kernel + 1)[:, None]
        return features.masked_fill(outside, float("-inf")).logsumexp(2)


def _layers(width: int, hidden: tuple[int, ...], classes: int) -> nn.Module:
    sizes = (width, *hidden)
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], classes))


def load_vectors(path: str, tokens: Sequence[str], into: torch.Tensor) -> None:
    """Overwrite the rows of all tokens that have a vector in a file.

    path    each line has a token and D numbers, separated by blanks; a first line of two numbers (the header
            of word2vec) is skipped. A token that occurs twice keeps its first vector.
    tokens  names of the rows, [V]
    into    [V, D], changed in place

    Memory: one line and the rows. Raises DataError with file and line.
    """
    rows = {token: row for row, token in enumerate(tokens)}
    found = np.zeros(len(tokens), dtype=bool)
    values = np.zeros(tuple(into.shape), dtype=np.float32)
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, start=1):
                token, _, numbers = line.rstrip().partition(" ")
                # Some files begin with the number of words and the number of columns.
                if number == 1 and token.isdecimal() and numbers.strip().isdecimal():
                    continue
                if (row := rows.pop(token, None)) is not None:
                    values[row], found[row] = _parse(path, number, numbers, into.shape[1]), True
    except OSError as error:
        raise DataError(f"model.vectors: {path} cannot be read: {error.strerror}") from error
    if not found.any():
        raise DataError(
            f"model.vectors: {path} has a vector for none of the {len(tokens)} tokens of the training set; "
            "expected lines of a token and its numbers, separated by blanks"
        )
    with torch.no_grad():
        into[torch.from_numpy(found)] = torch.from_numpy(values[found]).to(into.dtype)


def _parse(path: str, line: int, text: str, size: int) -> np.ndarray:
    try:
        vector = np.array(text.split(), dtype=np.float32)
    except ValueError:
        raise DataError(f"model.vectors: {path}:{line}: expected numbers after the token") from None
    if len(vector) != size:
        raise DataError(
            f"model.vectors: {path}:{line}: {len(vector)} numbers, expected {size} as in model.embedding_dim"
        )
    return vector
