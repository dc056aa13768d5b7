"""The folder of an entity database and its content.

    entity_mappings/        alias2qids.json  alias -> [[entity id, score], …]
                            qid2title.json   qid2desc.json   config.json {max_candidates}
    type_mappings/<system>/ qid2typenames.json  entity id -> [name, …]     config.json {max_types}
    kg_mappings/            qid2relations.json  entity id -> {relation: [entity id, …]}
                            config.json {max_connections}

Also supported: the same files without .json; type_vocab.json (name -> number) with qid2typeids.json;
kg_adj.txt (pairs of entity ids, separated by a tab).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ENTITIES, TYPES, RELATIONS = "entity_mappings", "type_mappings", "kg_mappings"
#: The name of all relations in kg_adj.txt, which does not name them.
UNNAMED_RELATION = "related to"
CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most candidates of an alias, types of an entity in a system, and relations of an entity."""

    max_candidates: int = 30
    max_types: int = 10
    max_connections: int = 100


@dataclass(slots=True, kw_only=True)
class Contents:
    """The content of a database.

    candidates  alias -> [(entity id, score)], highest first
    types       type system -> entity id -> names
    relations   entity id -> [(name of the relation, entity id of its object)]
    """

    limits: Limits = field(default_factory=Limits)
    candidates: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    types: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    relations: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def by_score(candidates: list[tuple[str, float]]) -> None:
    """Sort candidates by score, then by id, both descending."""
    candidates.sort(key=lambda each: (each[1], each[0]), reverse=True)


def current_folder(folder: Path) -> Path:
    """Return the folder, or the old folder if a writer has moved it but has not finished."""
    old = old_folder(folder)
    return old if old.is_dir() and not folder.exists() else folder


def old_folder(folder: Path) -> Path:
    """Where a writer moves the old folder while it puts the new one in place."""
    return folder.with_name(f".{folder.name}.old")
