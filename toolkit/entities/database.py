"""Entities and the aliases that may mean them: the folder entity_db, in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An entity with all that is known of it; one line of a file of profiles.

    mentions   aliases with scores
    types      names of types by type system
    relations  (name of the relation, entity id of its object)
    """

    entity_id: str
    title: str
    description: str = ""
    mentions: tuple[tuple[str, float], ...] = ()
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    relations: tuple[tuple[str, str], ...] = ()


class EntityDatabase:
    """Candidates of aliases; titles, descriptions, types and relations of entities."""

    @classmethod
    def load(cls, folder: Path) -> EntityDatabase:
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    def candidates(self, alias: str) -> Sequence[tuple[str, float]]:
        """Candidates (entity id, score) by (score, id) descending, at most max_candidates; none: ()."""
        raise NotImplementedError

    def title(self, qid: str) -> str:
        raise NotImplementedError

    def description(self, qid: str) -> str:
        raise NotImplementedError

    def types(self, qid: str) -> dict[str, Sequence[str]]:
        raise NotImplementedError

    def relations(self, qid: str) -> Sequence[tuple[str, str]]:
        raise NotImplementedError

    @property
    def entity_ids(self) -> Sequence[str]:
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        raise NotImplementedError

    def add(self, profile: Profile) -> None:
        raise NotImplementedError

    def update(self, profile: Profile) -> None:
        raise NotImplementedError

    def remove(self, qid: str) -> None:
        raise NotImplementedError
