"""The samples of one split of mentions, and batches of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.sealed import PREPARE_AGAIN
from toolkit.entities.jsonlines import Line
from toolkit.entities.sentences import Sentence, parse_sentence
from toolkit.errors import DataError
from toolkit.mentions import layout
from toolkit.mentions.tables import Array, Lists, Tables

_SENTENCES = (
    "SELECT file, line, record FROM sentences JOIN sources ON sentences.source = sources.id "
    "WHERE sentences.split = ? ORDER BY sentences.id"
)
_QIDS = "SELECT eid, qid FROM entities WHERE eid IN (SELECT eid FROM candidates) OR eid = ?"
_PLACES = (
    "SELECT sent_idx_unq, position FROM mentions JOIN sentences ON mentions.sentence = sentences.id "
    "WHERE mentions.split = ? ORDER BY sample_id"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MentionSamples:
    """The mentions of one split; sample i stands at place i of every array. Arrays are read-only.

    ids        [n] their ids in samples.sqlite
    lengths    [n] tokens of each, at least 1
    labels     [n] place of the gold among the candidates; -1 not scored, -2 outside
    aliases    [n] row of the table of candidates
    spans      [n, 2] tokens of the mention
    sentences  [n] samples of one sentence stand together
    masking    [n] with which probability training may hide a token of the mention
    members    [n, slices] bool
    """

    split: str
    ids: Array
    lengths: npt.NDArray[np.int32]
    labels: Array
    aliases: Array
    spans: Array
    sentences: Array
    masking: Array
    members: npt.NDArray[np.bool_]
    tokens: Lists
    tables: Tables
    database: Path

    def __len__(self) -> int:
        return len(self.ids)

    def candidates(self, indices: Array) -> Array:
        """Entities that each of these may mean, [n, width]; -1 fills up."""
        found: Array = self.tables.candidates[self.aliases[indices]].astype(np.int64)
        return found

    def others(self, indices: Array, most: int) -> Array:
        """The nearest other samples of each one's sentence, [n, most]; -1 where there are no more.

        By their distance in the sentence, the one before first.
        """
        steps = np.array([sign * way for way in range(1, most + 1) for sign in (-1, 1)], dtype=np.int64)
        near = indices[:, None] + steps[None, :]
        inside = (near >= 0) & (near < len(self))
        same = inside & (self.sentences[np.clip(near, 0, len(self) - 1)] == self.sentences[indices][:, None])
        # Those that are there come first, in their order.
        order = np.argsort(~same, axis=1, kind="stable")[:, :most]
        found: Array = np.where(
            np.take_along_axis(same, order, 1), np.take_along_axis(near, order, 1), layout.NOBODY
        )
        return found

    def records(self) -> Iterator[Sentence]:
        """Yield the sentences of the split in the order of their file, as they stood there.

        Raises DataError where the database is damaged.
        """
        for file, line, record in self._rows(_SENTENCES, self.split):
            yield parse_sentence(Line(Path(file), line, json.loads(record)))

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield id of the sentence and position there of every sample, in their order."""
        yield from self._rows(_PLACES, self.split)

    def qids(self) -> dict[int, str]:
        """Ids of all candidates by their numbers; "NC" stands for none of the candidates."""
        found: dict[int, str] = dict(self._rows(_QIDS, layout.NONE_OF_THEM))
        return found

    def _rows(self, query: str, argument: str | int) -> Iterator[Any]:
        try:
            with self._connected() as connection:
                yield from connection.execute(query, [argument])
        except sqlite3.Error as error:
            raise DataError(f"{self.database} is damaged ({error}); {PREPARE_AGAIN}") from error

    def _connected(self) -> closing[sqlite3.Connection]:
        # Immutable: no lock is taken, so that many ranks may read over a network file system.
        uri = f"{self.database.absolute().as_uri()}?mode=ro&immutable=1"
        return closing(sqlite3.connect(uri, uri=True))
