"""Cheapest edits that convert one sequence to another, for many pairs at once.

A rule chooses among several cheapest paths, because scores depend on the words that an edit touches. The
path is followed from its end. At each place, the edits are tried in a fixed order, and the first edit on a
cheapest path is taken. Libraries follow other rules, so they only provide a bound of the cost, which
limits the distance from the diagonal (Ukkonen, "Algorithms for approximate string matching", 1985).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError

#: Edits at a place; the diagonal keeps or replaces a code.
DIAGONAL, INSERT, DELETE = 0, 1, 2

Codes: TypeAlias = npt.NDArray[np.int32]
_Kinds: TypeAlias = npt.NDArray[np.int8]
_Costs: TypeAlias = npt.NDArray[np.signedinteger[Any]]

#: Cells computed at the same time: a limit of memory.
_CELLS_OF_BATCH = 1 << 22
#: A pair with more cells is refused.
_CELLS_OF_PAIR = 1 << 28
#: With fewer rows and columns than this, costs fit into 16 bits, _FAR included.
_SHORT = 5000
_FAR = 1 << 14
#: Marks a missing code.
_NONE = -1
#: Replaces an edit after a path is complete.
_DONE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two sequences of codes >= 0, and an upper bound of the cost to turn the first into the second."""

    first: Codes
    second: Codes
    bound: int

    @property
    def deletions(self) -> int:
        """Return the largest number of deletions: the farthest distance of a cheapest path to the left."""
        return (self.bound - len(self.second) + len(self.first)) // 2

    @property
    def insertions(self) -> int:
        return (self.bound + len(self.second) - len(self.first)) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The cost of edits, and the preference among several cheapest ones.

    order   DIAGONAL, INSERT and DELETE; the first on a cheapest path is taken
    solid   code that is never replaced; None: no code is ever replaced

    An insertion, a deletion and a replacement cost 1. A forbidden replacement costs as much as a deletion and
    an insertion together, so the order decides between them.
    """

    order: tuple[int, int, int]
    solid: int | None

    def price(self, first: Codes, second: Codes) -> _Kinds:
        """Return the cost of the diagonal: 0 for equal codes, else 1, or 2 if they must not be replaced."""
        differ: _Kinds = (first != second).view(np.int8)
        if self.solid is None:
            return differ + differ
        solid: _Kinds = ((first == self.solid) != (second == self.solid)).view(np.int8)
        return differ + solid


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The path of a pair from its start to its end: its edits, and their places in both; each [n]."""

    kinds: _Kinds
    firsts: Codes
    seconds: Codes


def align(pairs: Sequence[Pair], rule: Rule) -> Iterator[tuple[int, Steps]]:
    """Yield the place of each pair, in any order, with the steps of its path.

    Raises DataError for a pair that is too long and too different to be compared.
    """
    order = sorted(range(len(pairs)), key=lambda place: (len(pairs[place].first), pairs[place].bound))
    for places in _batches(order, pairs):
        yield from zip(places, _Batch([pairs[place] for place in places], rule).paths(), strict=True)


def kept(pair: Pair, steps: Steps) -> npt.NDArray[np.bool_]:
    """Return which steps keep a code, [n]."""
    (diagonal,) = np.nonzero(steps.kinds == DIAGONAL)
    left = np.zeros(len(steps.kinds), bool)
    left[diagonal] = pair.first[steps.firsts[diagonal]] == pair.second[steps.seconds[diagonal]]
    return left


def _batches(order: Sequence[int], pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """Yield the places of similar pairs, as many as fit into a batch."""
    batch: list[int] = []
    width = 0
    for place in order:
        rows, columns = len(pairs[place].first) + 2, pairs[place].bound + 2
        if rows * columns > _CELLS_OF_PAIR:
            raise DataError(
                f"a line of {rows - 2} characters differs by about {columns - 2} edits from the line at "
                "its place, which is too many to compare. Do the files belong together?"
            )
        if batch and (len(batch) + 1) * rows * max(width, columns) > _CELLS_OF_BATCH:
            yield batch
            batch, width = [], 0
        batch.append(place)
        width = max(width, columns)
    if batch:
        yield batch


class _Batch:
    """Pairs side by side, in a table [row, column, pair].

    A cell is a pair of prefixes: row - 1 codes of the first sequence, row - 1 + column - left codes of the
    second. So a column is a diagonal. Row 0 and the last column have infinite costs.
    """

    def __init__(self, pairs: Sequence[Pair], rule: Rule) -> None:
        self._rule = rule
        self._left = max(pair.deletions for pair in pairs)
        self._width = self._left + max(pair.insertions for pair in pairs) + 1
        self._ends = np.array([(len(pair.first), len(pair.second)) for pair in pairs], np.int32).T
        self._rows = int(self._ends[0].max())
        self._firsts = _stacked([pair.first for pair in pairs], 0, self._rows + 1)
        self._seconds = _stacked([pair.second for pair in pairs], self._left, self._rows + self._width)

    def paths(self) -> Iterator[Steps]:
        """Yield the steps of each pair."""
        kinds = self._kinds()
        ends = self._ends[:, :, None]
        firsts = ends[0] - np.cumsum(kinds != INSERT, axis=1, dtype=np.int32)
        seconds = ends[1] - np.cumsum(kinds != DELETE, axis=1, dtype=np.int32)
        for place, count in enumerate(np.count_nonzero(kinds != _DONE, axis=1)):
            path = (place, slice(None, count))
            yield Steps(kinds=kinds[path][::-1], firsts=firsts[path][::-1], seconds=seconds[path][::-1])

    def _kinds(self) -> _Kinds:
        """Follow all paths from their ends; return the edits, then _DONE, [pairs, n]."""
        costs = self._costs()
        _, columns, pairs = costs.shape
        flat = costs.reshape(-1)
        back = np.array([-columns * pairs, -pairs, pairs - columns * pairs, 0])
        ends = (self._ends[0] + 1) * columns + self._ends[1] - self._ends[0] + self._left
        start = (columns + self._left) * pairs + np.arange(pairs)
        cells = ends.astype(np.int64) * pairs + np.arange(pairs)
        kinds = []
        while (cells != start).any():
            kind = self._last_steps(flat, cells, back)
            kind[cells == start] = _DONE
            cells += back[kind]
            kinds.append(kind)
        return np.stack(kinds, axis=1) if kinds else np.empty((pairs, 0), np.int8)

    def _last_steps(self, flat: _Costs, cells: npt.NDArray[np.int64], back: npt.NDArray[np.int64]) -> _Kinds:
        """Return the last step of the path to each of these cells, [pairs]."""
        here = flat[cells]
        preferred, second, last = self._rule.order
        kind = np.full(len(cells), last, np.int8)
        for step in (second, preferred):
            price = self._diagonal_price(cells) if step == DIAGONAL else 2 * (step == DELETE)
            kind[flat[cells + back[step]] + price == here] = step
        return kind

    def _diagonal_price(self, cells: npt.NDArray[np.int64]) -> _Kinds:
        pairs = len(cells)
        rows, columns = np.divmod(cells // pairs, self._width + 1)
        # There is no code before row 1. The value at -1 does not matter, because costs in row 0 are infinite.
        of = np.arange(pairs)
        return self._rule.price(self._firsts[rows - 2, of], self._seconds[rows - 2 + columns, of])

    def _costs(self) -> _Costs:
        """Fill the table. Each cost is reduced by the number of its column, so an insertion adds nothing."""
        dtype, far = (np.int16, _FAR) if self._rows + self._width < _SHORT else (np.int32, _FAR << 14)
        costs = np.empty((self._rows + 2, self._width + 1, len(self._ends[0])), dtype)
        costs[0], costs[1] = far, -self._left
        costs[1, : self._left] = far
        costs[:, -1] = far
        for row in range(self._rows):
            before, now = costs[row + 1], costs[row + 2, :-1]
            price = self._rule.price(self._firsts[row], self._seconds[row : row + self._width])
            np.add(before[:-1], price, out=now)
            np.minimum(now, before[1:] + dtype(2), out=now)
            np.minimum.accumulate(now, axis=0, out=now)
        return costs


def _stacked(sequences: Sequence[Codes], before: int, size: int) -> Codes:
    """Return the sequences as columns, with `before` empty rows above them and empty rows as padding."""
    stacked = np.full((before + size, len(sequences)), _NONE, np.int32)
    for column, sequence in enumerate(sequences):
        stacked[before : before + len(sequence), column] = sequence[:size]
    return stacked
