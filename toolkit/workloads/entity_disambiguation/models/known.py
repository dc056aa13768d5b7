"""Properties of the training data that a model depends on. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Properties of its data that a model depends on.

    vocabulary_size  numbers of tokens, markers included
    pad_id           fills a batch up
    specials_before  special tokens before every text
    markers_like     the token that each marker's vector is first copied from
    types            names, by their numbers from 1
    relations        the same of relations
    """

    vocabulary_size: int
    pad_id: int
    specials_before: int
    markers_like: tuple[int, ...]
    types: tuple[str, ...]
    relations: tuple[str, ...]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Known:
        """Those of a prepared set's manifest, or of a run's file.

        Raises KeyError, TypeError and ValueError where that is damaged.
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
        """Arguments of a model, beside its section."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "pad_id": self.pad_id,
            "like": self.markers_like,
            "types": len(self.types),
            "relations": len(self.relations),
        }
