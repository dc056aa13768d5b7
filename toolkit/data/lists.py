"""Lists of numbers in two flat arrays, and rows of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of numbers: list i is values[offsets[i]:offsets[i + 1]]."""

    values: Array
    offsets: Array

    def lengths(self, which: Array) -> Array:
        """Length of each of these lists, [n]."""
        lengths: Array = self.offsets[which + 1] - self.offsets[which]
        return lengths

    def lasts(self, which: Array, empty: int) -> Array:
        """Last number of each of these lists, [n]; `empty` of an empty one."""
        found = np.full(len(which), empty, dtype=np.int64)
        some = self.lengths(which) > 0
        found[some] = self.values[self.offsets[which[some] + 1] - 1]
        return found

    def gather(self, which: Array, fill: int) -> Array:
        """These lists as rows, [n, longest] int64, filled up at their ends; at least one column."""
        lengths = self.lengths(which)
        rows = np.full((len(which), max(int(lengths.max(initial=0)), 1)), fill, dtype=np.int64)
        shifts = np.repeat(self.offsets[which] - (np.cumsum(lengths) - lengths), lengths)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = self.values[shifts + np.arange(len(shifts))]
        return rows
