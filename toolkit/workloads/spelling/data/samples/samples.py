"""The samples of one split of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.database import reading
from toolkit.data.provenance import Origin
from toolkit.data.ragged import Array, Lists, protect
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.encoding import REAL, unpack_features

_ORIGIN = (
    "SELECT file, line, errors, text FROM samples JOIN sources ON dataset = sources.id WHERE sample_id = ?"
)
_LEFT_OUT = "SELECT dataset, line - 1, text FROM left_out WHERE split = ? ORDER BY dataset, line"
_TEXTS = "SELECT text, target FROM samples WHERE sample_id = ?"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpellingSamples:
    """The texts of one split; index i of every array is sample i. Arrays are read-only.

    ids      [n] ids in samples.sqlite, which are also the numbers of the samples' lists
    lengths  [n] number of tokens, special tokens included
    errors   [n] 1 if the text has an error
    sources  [n] number of the file
    lines    [n] line in the file, from 0
    lists    lists of all splits by name, as in the layout
    at_hand  texts by id, which are not in the database; their targets are unknown
    """

    split: str
    ids: Array
    lengths: npt.NDArray[np.int32]
    errors: Array
    sources: Array
    lines: Array
    lists: dict[str, Lists]
    database: Path
    at_hand: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, name: str, indices: Array, fill: int) -> Array:
        """Lists of these samples as rows, [n, longest] int64, padded with `fill`."""
        return self.lists[name].gather(self.ids[indices], fill)

    def sizes(self, name: str, indices: Array) -> Array:
        """Lengths of the lists of these samples, [n]."""
        return self.lists[name].lengths(self.ids[indices])

    def chosen(self, keep: npt.NDArray[np.bool_]) -> SpellingSamples:
        """Return the samples where `keep` [n] is true."""
        names = ("ids", "lengths", "errors", "sources", "lines")
        kept: dict[str, Any] = protect(**{name: getattr(self, name)[keep] for name in names})
        return replace(self, **kept)

    def features(self, indices: Array) -> npt.NDArray[np.uint8]:
        """Features of the pieces of these samples, [n, most pieces, 13], padded with zeros."""
        return unpack_features(self.rows(layout.FEATURES, indices, 0))

    def real_words(self, indices: Array) -> npt.NDArray[np.bool_]:
        """Return whether each word of these samples is real (`RealWords`), [n, most words]."""
        words = self.rows(layout.WORDS, indices, -1)
        unreal = (words >= 0) & ((self.rows(layout.FEATURES, indices, 0) & REAL) == 0)
        width = max(int(self.sizes(layout.LABELS, indices).max(initial=0)), 1)
        found = np.ones((len(indices), width), dtype=bool)
        rows, places = np.nonzero(unreal)
        found[rows, words[rows, places]] = False
        return found

    def texts(self, indices: Array) -> Iterator[tuple[str, str | None]]:
        """Yield text and target of each of these samples; the target is None if the file has only labels.

        A text at hand is its own target. Raises DataError if the database is damaged.
        """
        ids = self.ids[indices].tolist()
        if self.at_hand is None:
            yield from self._found(_TEXTS, ids)
        else:
            yield from ((self.at_hand[number],) * 2 for number in ids)

    def left_out(self) -> Iterator[tuple[int, int, str]]:
        """Yield source, line (from 0) and text of each line that was left out, in the order of the files.

        Raises DataError if the database is damaged.
        """
        yield from self._found(_LEFT_OUT, [self.split])

    def origins(self, indices: Array) -> dict[int, Origin]:
        """File, line, number of errors and text of these samples. Raises DataError."""
        found = {}
        rows = self._found(_ORIGIN, self.ids[indices].tolist())
        for index, (file, line, errors, text) in zip(indices.tolist(), rows, strict=True):
            label = f"{errors} errors" if errors is not None else ""
            found[index] = Origin(sample=index, file=file, line=line, label=label, text=text)
        return found

    def _found(self, query: str, keys: Iterable[int | str]) -> Iterator[Any]:
        """Yield the rows of a query for each of these keys, in order."""
        with reading(self.database) as connection:
            for key in keys:
                yield from connection.execute(query, [key])
