"""Arrays of a prepared set of mentions, mapped into memory: candidates of aliases, facts of entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.lists import Array, Lists
from toolkit.data.sealed import map_array
from toolkit.mentions import layout


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """What is known of aliases and entities.

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
        relation_offsets = map_array(path / layout.RELATION_OFFSETS, layout.OFFSET_DTYPE)
        return cls(
            candidates=map_array(path / layout.CANDIDATES, layout.ID_DTYPE).reshape(-1, width),
            priors=map_array(path / layout.PRIORS, layout.FLOAT_DTYPE).reshape(-1, width),
            tokens=Lists(
                map_array(path / layout.ENTITY_TOKENS, meta["token_dtype"]),
                map_array(path / layout.ENTITY_OFFSETS, layout.OFFSET_DTYPE),
            ),
            title_lengths=map_array(path / layout.TITLE_LENGTHS, "<u2"),
            masking=map_array(path / layout.ENTITY_MASKING, layout.FLOAT_DTYPE),
            types=Lists(
                map_array(path / layout.TYPES, layout.ID_DTYPE),
                map_array(path / layout.TYPE_OFFSETS, layout.OFFSET_DTYPE),
            ),
            relations=Lists(map_array(path / layout.RELATIONS, layout.ID_DTYPE), relation_offsets),
            objects=Lists(map_array(path / layout.OBJECTS, layout.ID_DTYPE), relation_offsets),
        )

    @property
    def entities(self) -> int:
        """Numbers of entities, 0 for none of the candidates included."""
        return len(self.title_lengths)

    def connected(self, which: Array) -> npt.NDArray[np.bool_]:
        """Which of these distinct entities, in ascending order, a relation connects: [n, n], symmetric."""
        found = np.zeros((len(which), len(which)), dtype=bool)
        lengths = self.objects.lengths(which)
        objects = self.objects.gather(which, layout.NOBODY)
        rows = np.repeat(np.arange(len(which)), lengths)
        targets = objects[np.arange(objects.shape[1]) < lengths[:, None]]
        places = np.minimum(np.searchsorted(which, targets), len(which) - 1)
        hits = which[places] == targets
        found[rows[hits], places[hits]] = True
        return found | found.T
