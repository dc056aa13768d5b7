"""Profiles of entities as JSON lines, from which databases are made."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import Line, is_a, kind_of, read_lines

#: What to do with relations that have the number of a Wikidata property as name, such as P530.
Pids = Literal["refuse", "keep", "drop"]

_KEYS = ("entity_id", "title", "description", "mentions", "types", "relations")
_PID = re.compile(r"P\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """All data of an entity; one line of a file of profiles.

    mentions   (alias, score)
    types      names of types by type system
    relations  (name of the relation, entity id of its object)
    """

    entity_id: str
    title: str
    description: str = ""
    mentions: tuple[tuple[str, float], ...] = ()
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relations: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the object that read_profiles reads as this profile."""
        return {
            "entity_id": self.entity_id,
            "title": self.title,
            "description": self.description,
            "mentions": [list(mention) for mention in self.mentions],
            "types": {system: list(names) for system, names in self.types.items()},
            "relations": [{"relation": name, "object": entity} for name, entity in self.relations],
        }


def normalise(text: str) -> str:
    """Return an alias as key: letters, digits and spaces, without accents, in lower case.

    Canonical decomposition (NFD) makes accents separate characters, which are then dropped.
    """
    kept = (each for each in unicodedata.normalize("NFD", text) if each.isalnum() or each == " ")
    return "".join(kept).lower().strip()


def read_profiles(
    path: Path, *, pids: Pids = "refuse", as_written: bool = False, known: Container[str] = ()
) -> Iterator[tuple[Line, Profile]]:
    """Yield the profiles of a file, each with its line. Raises DataError with file and line.

    Aliases are normalised unless `as_written` or `known`. If two become equal, the higher score counts. If
    the title is missing, it is the entity's id.
    """

    def key_of(alias: str) -> str:
        return alias if as_written or alias in known else normalise(alias)

    for line in read_lines(path):
        yield line, _profile(line, pids, key_of)


def _profile(line: Line, pids: Pids, key_of: Callable[[str], str]) -> Profile:
    for key in line.record:
        if key not in _KEYS:
            line.refuse(f"unknown key {key}; a profile has {', '.join(_KEYS)}")
    entity_id = line.value("entity_id", str, "a text")
    if not entity_id:
        line.refuse("entity_id is empty; expected an id")
    return Profile(
        entity_id=entity_id,
        title=line.optional("title", str, "a text", entity_id),
        description=line.optional("description", str, "a text", ""),
        mentions=tuple(_mentions(line, key_of).items()),
        types=_types(line),
        relations=tuple(_relations(line, pids)),
    )


def _mentions(line: Line, key_of: Callable[[str], str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for place, pair in enumerate(line.items("mentions", list, "pairs [alias, score]")):
        if len(pair) != 2 or not is_a(pair[0], str) or not is_a(pair[1], int, float):
            line.refuse(f"mentions[{place}] is {json.dumps(pair)}, expected [alias, score]")
        if not math.isfinite(pair[1]):
            line.refuse(f"mentions[{place}]: the score is {pair[1]}, expected a finite number")
        alias = key_of(pair[0])
        if not alias:
            line.refuse(
                f"mentions[{place}]: nothing is left of the alias {pair[0]!r}; it needs a letter or digit"
            )
        found[alias] = max(pair[1], found.get(alias, -math.inf))
    return found


def _types(line: Line) -> dict[str, tuple[str, ...]]:
    given = line.optional("types", dict, "an object of type systems", {})
    for system, names in given.items():
        if not is_a(names, list) or not all(is_a(name, str) for name in names):
            line.refuse(f"types.{system} is {json.dumps(names)[:60]}, expected a list of names")
        if not system or "/" in system or system.startswith("."):
            line.refuse(f"types: {system!r} cannot name a type system, as it becomes a folder's name")
    return {system: tuple(names) for system, names in given.items()}


def _relations(line: Line, pids: Pids) -> Iterator[tuple[str, str]]:
    if line.record.get("relations") is None:
        return
    for place, given in enumerate(line.items("relations", dict, 'objects {"relation", "object"}')):
        for key in ("relation", "object"):
            if not is_a(given.get(key), str):
                line.refuse(f"relations[{place}].{key} is {kind_of(given.get(key))}, expected a text")
        name = given["relation"]
        if _PID.fullmatch(name) and pids == "refuse":
            line.refuse(
                f"relations[{place}].relation is {name}, the number of a property; texts of entities need "
                "its name. Write names, or pass --pids drop (leave them out) or --pids keep (as they are)"
            )
        if not _PID.fullmatch(name) or pids == "keep":
            yield name, given["object"]
