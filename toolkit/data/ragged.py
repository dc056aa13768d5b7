"""Lists of numbers in two flat arrays, and rows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of numbers: list i is values[offsets[i]:offsets[i + 1]]."""

    values: Array
    offsets: Array

    @classmethod
    def of(cls, rows: Sequence[Array], dtype: npt.DTypeLike) -> Lists:
        """Make lists from rows of numbers, converted to this type."""
        values = np.concatenate([np.zeros(0, dtype), *rows]).astype(dtype)
        return cls(values, offsets_of(np.array([len(row) for row in rows], np.int64)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Array]:
        for first, last in pairwise(self.offsets):
            yield self.values[first:last]

    @property
    def rows(self) -> Array:
        """Lists of equal lengths as rows, [n, length]. Raises ValueError for other lists."""
        lengths = np.diff(self.offsets)
        if len(np.unique(lengths)) > 1:
            raise ValueError(f"lists have {lengths.min()} to {lengths.max()} numbers, expected equal lengths")
        return self.values.reshape(len(self), int(lengths.max(initial=0)))

    def lengths(self, which: Array) -> Array:
        """Length of each of these lists, [n]."""
        lengths: Array = self.offsets[which + 1] - self.offsets[which]
        return lengths

    def lasts(self, which: Array, empty: int) -> Array:
        """Last number of each of these lists, [n]; `empty` for an empty one."""
        found = np.full(len(which), empty, dtype=np.int64)
        some = self.lengths(which) > 0
        found[some] = self.values[self.offsets[which[some] + 1] - 1]
        return found

    def gather(self, which: Array, fill: int) -> Array:
        """These lists as rows, [n, longest] int64, padded with `fill` at the end; at least one column."""
        lengths = self.lengths(which)
        rows = np.full((len(which), max(int(lengths.max(initial=0)), 1)), fill, dtype=np.int64)
        shifts = np.repeat(self.offsets[which] - (np.cumsum(lengths) - lengths), lengths)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = self.values[shifts + np.arange(len(shifts))]
        return rows


def offsets_of(lengths: Array) -> Array:
    """Return where each of consecutive lists begins, and where the last one ends, [n + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def protect(**arrays: Array) -> dict[str, Array]:
    """Make arrays read-only; return them by name."""
    for array in arrays.values():
        array.setflags(write=False)
    return arrays
