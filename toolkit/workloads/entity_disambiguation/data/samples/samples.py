"""The samples of one split of mentions, and the tables of aliases and entities that they point into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.prepared.arrays import map_array, map_lists
from toolkit.data.prepared.database import reading
from toolkit.data.provenance import Origin
from toolkit.data.ragged import Array, Lists
from toolkit.workloads.entity_disambiguation.data.samples import layout

_ORIGIN = (
    "SELECT file, mentions.line, gold, text, first_character, last_character FROM mentions "
    "JOIN sentences ON mentions.sentence = sentences.id JOIN sources ON sentences.source = sources.id "
    "WHERE sample_id = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The tables of aliases and entities.

    candidates      [aliases, width] entities, the most popular first; -1 fills up
    priors          [aliases, width] log of each one's share of the alias
    tokens          of every entity's text, special ones included
    title_lengths   [entities + 1] how many of them, behind the special ones, are the title's
    masking         [entities + 1] with which probability training may hide a token of the title
    types           numbers of types; from 1
    relations       numbers of relations; from 1
    objects         beside them the entities that they lead to, or -1
    """

    candidates: Array
    priors: Array
    tokens: Lists
    title_lengths: Array
    masking: Array
    types: Lists
    relations: Lists
    objects: Lists

    @classmethod
    def open(cls, path: Path, meta: Mapping[str, Any]) -> Tables:
        """Map the arrays of a set. Raises DataError."""
        width = int(meta["width"])
        return cls(
            candidates=map_array(path, layout.CANDIDATES).reshape(-1, width),
            priors=map_array(path, layout.PRIORS).reshape(-1, width),
            tokens=map_lists(path, layout.ENTITY_TOKENS.of(meta["token_dtype"]), layout.ENTITY_OFFSETS),
            title_lengths=map_array(path, layout.TITLE_LENGTHS),
            masking=map_array(path, layout.ENTITY_MASKING),
            types=map_lists(path, layout.TYPES, layout.TYPE_OFFSETS),
            relations=map_lists(path, layout.RELATIONS, layout.RELATION_OFFSETS),
            objects=map_lists(path, layout.OBJECTS, layout.RELATION_OFFSETS),
        )

    @property
    def entities(self) -> int:
        """Numbers of entities, 0 for none of the candidates included."""
        return len(self.title_lengths)

    def connected(self, which: Array) -> npt.NDArray[np.bool_]:
        """Which of these distinct entities, in ascending order, a relation connects: [n, n], symmetric."""
        found = np.zeros((len(which), len(which)), dtype=bool)
        lengths = self.objects.lengths(which)
        objects = self.objects.gather(which, layout.NO_ENTITY)
        rows = np.repeat(np.arange(len(which)), lengths)
        targets = objects[np.arange(objects.shape[1]) < lengths[:, None]]
        places = np.minimum(np.searchsorted(which, targets), len(which) - 1)
        hits = which[places] == targets
        found[rows[hits], places[hits]] = True
        return found | found.T


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MentionSamples:
    """The mentions of one split; sample i is at place i of every array. Arrays are read-only.

    ids        [n] their ids in samples.sqlite
    lengths    [n] tokens of each, at least 1
    labels     [n] place of the gold among the candidates; -1 not scored, -2 outside
    aliases    [n] row of the table of candidates
    spans      [n, 2] tokens of the mention
    sentences  [n] samples of one sentence are adjacent
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
        return self.tables.candidates[self.aliases[indices]].astype(np.int64)

    def others(self, indices: Array, most: int) -> Array:
        """The nearest other samples of each one's sentence, [n, most]; -1 fills up.

        By their distance in the sentence, the one before first.
        """
        steps = np.array([sign * way for way in range(1, most + 1) for sign in (-1, 1)], dtype=np.int64)
        near = indices[:, None] + steps[None, :]
        inside = (near >= 0) & (near < len(self))
        same = inside & (self.sentences[np.clip(near, 0, len(self) - 1)] == self.sentences[indices][:, None])
        # Those that are there come first, in their order.
        order = np.argsort(~same, axis=1, kind="stable")[:, :most]
        return np.where(
            np.take_along_axis(same, order, 1), np.take_along_axis(near, order, 1), layout.NO_ENTITY
        )

    def origins(self, indices: Array) -> dict[int, Origin]:
        """File, line, gold and text of these samples, with the mention in brackets. Raises DataError."""
        found = {}
        with reading(self.database) as connection:
            for index in np.asarray(indices).tolist():
                row = connection.execute(_ORIGIN, [int(self.ids[index])]).fetchone()
                file, line, gold, text, first, last = row
                shown = f"{text[:first]}[{text[first:last]}]{text[last:]}"
                found[index] = Origin(sample=index, file=file, line=line, label=gold, text=shown)
        return found
