"""The samples of one split, in memory maps, and batches of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.sealed import PREPARE_AGAIN
from toolkit.data.tokens import PAD_ID
from toolkit.errors import DataError

Indices = Sequence[int] | npt.NDArray[np.integer]

#: Well under the number of values that every SQLite takes in one statement.
_IDS_PER_QUERY = 500
_FRAGMENTS = "SELECT sample_id, text FROM fragments WHERE sample_id IN ({places})"
_TEXTS = "SELECT id, text FROM texts WHERE id IN ({places})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """The samples of one split; sample i stands at place i of every array. Arrays are read-only.

    ids       [n] int64, their ids in samples.sqlite
    text_ids  [n] int64, the text that each is a fragment of; fragments of one text stand together
    lengths   [n] int32, tokens of each, special ones included, at least 1
    labels    [n] int32
    starts    [n] int64, where each begins in `flat`
    flat      tokens of all splits, uint16 or uint32, mapped into memory
    """

    ids: npt.NDArray[np.int64]
    text_ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    flat: npt.NDArray[np.unsignedinteger[Any]]
    database: Path

    def __len__(self) -> int:
        return len(self.ids)

    def tokens(self, index: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Tokens of one sample, [length]; a view, nothing is copied."""
        start = self.starts[index]
        return self.flat[start : start + self.lengths[index]]

    def texts(self, indices: Indices) -> list[str]:
        """Each sample's own text, which of a folded one is the fragment's.

        Raises DataError where the database is damaged.
        """
        return self._look_up(_FRAGMENTS, self.ids[np.asarray(indices, dtype=np.int64)])

    def whole_texts(self, text_ids: Indices) -> list[str]:
        """Texts by their ids, as they stood in the source. Raises DataError where the database is damaged."""
        return self._look_up(_TEXTS, np.asarray(text_ids, dtype=np.int64))

    def _look_up(self, query: str, ids: npt.NDArray[np.int64]) -> list[str]:
        wanted: list[int] = ids.tolist()
        # Immutable: no lock is taken, so that many ranks may read over a network file system. A run that
        # records its results meanwhile touches no page of the texts or samples.
        uri = f"{self.database.absolute().as_uri()}?mode=ro&immutable=1"
        found: dict[int, str] = {}
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                for first in range(0, len(wanted), _IDS_PER_QUERY):
                    some = wanted[first : first + _IDS_PER_QUERY]
                    found.update(connection.execute(query.format(places=", ".join("?" * len(some))), some))
            return [found[number] for number in wanted]
        except (sqlite3.Error, KeyError) as error:
            raise DataError(f"{self.database} is damaged ({error}); {PREPARE_AGAIN}") from error


def pad_batch(
    samples: Samples, indices: Indices, pad_id: int = PAD_ID
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Gather samples into a batch: tokens [B, L], lengths [B], labels [B], all int64.

    L is the longest length among them, and 1 for an empty batch. Shorter samples end in pad_id.
    """
    picked = np.asarray(indices, dtype=np.int64)
    lengths = samples.lengths[picked].astype(np.int64)
    tokens = np.full((len(picked), max(lengths.max(initial=0), 1)), pad_id, dtype=np.int64)
    # Of each token: where its sample begins in `flat`, less the tokens of the samples before it.
    shifts = np.repeat(samples.starts[picked] - (np.cumsum(lengths) - lengths), lengths)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = samples.flat[shifts + np.arange(len(shifts))]
    return tokens, lengths, samples.labels[picked].astype(np.int64)
