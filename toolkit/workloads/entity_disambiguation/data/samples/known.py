"""The properties of the training data that a model depends on. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The properties of the training data that a model depends on.

    vocabulary_size  number of token ids, markers included
    pad_id           number of the padding token
    specials_before  number of special tokens before every text
    markers_like     for each marker, the token that provides its initial vector
    types            names of types, in the order of their numbers from 1
    relations        names of relations, in the order of their numbers from 1
    """

    vocabulary_size: int
    pad_id: int
    specials_before: int
    markers_like: tuple[int, ...]
    types: tuple[str, ...]
    relations: tuple[str, ...]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Known:
        """Read the properties from a prepared set's manifest, or from a run's file.

        Raises KeyError, TypeError and ValueError for a damaged file.
        """
        return cls(
            vocabulary_size=int(facts["vocabulary_size"]),
            pad_id=int(facts["pad_id"]),
            specials_before=int(facts["specials_before"]),
            markers_like=tuple(map(int, facts["markers_like"])),
            types=tuple(facts["types"]),
            relations=tuple(facts["relations"]),
        )

    def sizes(self) -> dict[str, Any]:
        """The arguments of a model besides its section."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "pad_id": self.pad_id,
            "like": self.markers_like,
            "types": len(self.types),
            "relations": len(self.relations),
        }
