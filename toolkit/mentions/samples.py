"""The samples of one split of mentions, and batches of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.data.lists import Array, Lists
from toolkit.data.origins import Origin
from toolkit.mentions import layout
from toolkit.mentions.tables import Tables

_ORIGIN = (
    "SELECT file, mentions.line, gold, text, first_character, last_character FROM mentions "
    "JOIN sentences ON mentions.sentence = sentences.id JOIN sources ON sentences.source = sources.id "
    "WHERE sample_id = ?"
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

    def origins(self, indices: Array) -> dict[int, Origin]:
        """File, line, gold and text of these samples, with the mention in brackets. Raises sqlite3.Error."""
        found = {}
        with self.connected() as connection:
            for index in np.asarray(indices).tolist():
                row = connection.execute(_ORIGIN, [int(self.ids[index])]).fetchone()
                file, line, gold, text, first, last = row
                shown = f"{text[:first]}[{text[first:last]}]{text[last:]}"
                found[index] = Origin(sample=index, file=file, line=line, label=gold, text=shown)
        return found

    def connected(self) -> closing[sqlite3.Connection]:
        """The database, which a context closes."""
        # Immutable: no lock is taken, so that many ranks may read over a network file system.
        uri = f"{self.database.absolute().as_uri()}?mode=ro&immutable=1"
        return closing(sqlite3.connect(uri, uri=True))
