"""The samples of one split of mentions, and their tables of aliases and entities."""

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

    candidates      [aliases, width] entities, the most popular first, padded with -1
    priors          [aliases, width] log of each candidate's share of its alias
    tokens          of every entity's text, special ones included
    title_lengths   [entities + 1] number of tokens of the title, which follow the special tokens
    masking         [entities + 1] probability of hiding a token of the title in training
    types           numbers of types, from 1
    relations       numbers of relations, from 1
    objects         the objects of these relations, or -1
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

    def connected(self, which: Array) -> npt.NDArray[np.bool_]:
        """Whether a relation connects two of these distinct entities: [n, n], symmetric."""
        found = np.zeros((len(which), len(which)), dtype=bool)
        lengths = self.objects.lengths(which)
        objects = self.objects.gather(which, layout.NO_ENTITY)
        rows = np.repeat(np.arange(len(which)), lengths)
        targets = objects[np.arange(objects.shape[1]) < lengths[:, None]]
        order = np.argsort(which)
        places = order[np.minimum(np.searchsorted(which, targets, sorter=order), len(which) - 1)]
        hits = which[places] == targets
        found[rows[hits], places[hits]] = True
        return found | found.T


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MentionSamples:
    """The mentions of one split; index i of every array is sample i. Arrays are read-only.

    ids        [n] ids in samples.sqlite
    lengths    [n] number of tokens, at least 1
    labels     [n] position of the gold among the candidates; -1 not scored, -2 not a candidate
    aliases    [n] row in the table of candidates
    spans      [n, 2] first token of the mention, and the token after its last one
    sentences  [n] samples of one sentence are adjacent
    masking    [n] probability of hiding a token of the mention in training
    members    [n, slices] whether the sample is a member
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
        """The candidates of samples, [n, width], padded with -1."""
        return self.tables.candidates[self.aliases[indices]].astype(np.int64)

    def others(self, indices: Array, most: int) -> Array:
        """The nearest other samples in the sentence of each sample, [n, most], padded with -1.

        Sorted by distance; at equal distances, the preceding sample comes first.
        """
        steps = np.array([sign * way for way in range(1, most + 1) for sign in (-1, 1)], dtype=np.int64)
        near = indices[:, None] + steps[None, :]
        inside = (near >= 0) & (near < len(self))
        same = inside & (self.sentences[np.clip(near, 0, len(self) - 1)] == self.sentences[indices][:, None])
        # Existing samples come first, in their order.
        order = np.argsort(~same, axis=1, kind="stable")[:, :most]
        return np.where(
            np.take_along_axis(same, order, 1), np.take_along_axis(near, order, 1), layout.NO_ENTITY
        )

    def origins(self, indices: Array) -> dict[int, Origin]:
        """File, line, gold and text of samples, with the mention in brackets. Raises DataError."""
        found = {}
        with reading(self.database) as connection:
            for index in np.asarray(indices).tolist():
                row = connection.execute(_ORIGIN, [int(self.ids[index])]).fetchone()
                file, line, gold, text, first, last = row
                shown = f"{text[:first]}[{text[first:last]}]{text[last:]}"
                found[index] = Origin(sample=index, file=file, line=line, label=gold, text=shown)
        return found
