"""Read pretrained word vectors from a text file of GloVe, word2vec or fastText."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from toolkit.errors import DataError


def load_vectors(path: str, tokens: Sequence[str], into: torch.Tensor) -> int:
    """Overwrite the rows of all tokens that have a vector in a file; return their number.

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
    return int(found.sum())


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
