"""The folder of an entity database: JSON files, of which others' forms are read, too.

    entity_mappings/        alias2qids.json  alias -> [[entity id, score], …]
                            qid2title.json   qid2desc.json   config.json {max_candidates}
    type_mappings/<system>/ qid2typenames.json  entity id -> [name, …]     config.json {max_types}
    kg_mappings/            qid2relations.json  entity id -> {relation: [entity id, …]}
                            config.json {max_connections}

Read as well: the same files without .json; type_vocab.json (name -> number) with qid2typeids.json;
kg_adj.txt (pairs of entity ids, a tab between them).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.entities.jsonlines import is_a, kind_of
from toolkit.errors import DataError
from toolkit.files import fsync_dir

MAX_CANDIDATES = 30
MAX_TYPES = 10
MAX_CONNECTIONS = 100

ENTITIES, TYPES, RELATIONS = "entity_mappings", "type_mappings", "kg_mappings"
#: kg_adj.txt names none.
UNNAMED_RELATION = "related to"
_CONFIG = "config.json"
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a database keeps: candidates of an alias, types of a system and relations of an entity."""

    max_candidates: int = MAX_CANDIDATES
    max_types: int = MAX_TYPES
    max_connections: int = MAX_CONNECTIONS


@dataclass(slots=True, kw_only=True)
class Contents:
    """What a database holds.

    candidates  alias -> (entity id, score), highest first
    types       type system -> entity id -> names
    """

    limits: Limits = field(default_factory=Limits)
    candidates: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    types: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    relations: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def by_score(candidates: list[tuple[str, float]]) -> None:
    """Put candidates in their order: by score, then by id, both descending."""
    candidates.sort(key=lambda each: (each[1], each[0]), reverse=True)


def read_folder(folder: Path) -> Contents:
    """Read a database. Raises DataError that names file and key."""
    folder = _standing(folder)
    if not (folder / ENTITIES).is_dir():
        raise DataError(
            f"{folder} is no entity database: it has no folder {ENTITIES}; "
            "make one with `stk entities import`"
        )
    limits = Limits(
        max_candidates=_limit(folder / ENTITIES, "max_candidates", MAX_CANDIDATES),
        max_types=max((_limit(each, "max_types", MAX_TYPES) for each in _systems(folder)), default=MAX_TYPES),
        max_connections=_limit(folder / RELATIONS, "max_connections", MAX_CONNECTIONS),
    )
    titles = _texts(_File.needed(folder / ENTITIES, "qid2title"))
    contents = Contents(
        limits=limits,
        candidates=_candidates(_File.needed(folder / ENTITIES, "alias2qids"), titles),
        titles=titles,
        descriptions=_texts(_File.found(folder / ENTITIES, "qid2desc")),
        types={each.name: _types(each) for each in _systems(folder)},
        relations=_relations(folder / RELATIONS),
    )
    _trim(contents)
    return contents


def folder_fingerprint(folder: Path) -> str:
    """SHA-256 of a database's files: told without reading what they say, in a tenth of the time."""
    folder = _standing(folder)
    digest = hashlib.sha256()
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def write_folder(folder: Path, contents: Contents) -> None:
    """Write a database; whoever reads finds the old one whole or the new one. Raises DataError, OSError.

    A folder that also holds files of others is refused: it is replaced as a whole.
    """
    if alien := sorted(_alien(folder)):
        raise DataError(
            f"{folder} also holds {alien[0]}, which would be lost; write the database to a folder of its own "
            "(`stk entities export` and `stk entities import`)"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    try:
        for name, value in _files(contents):
            _write(temporary / name, value)
        _exchange(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _standing(folder: Path) -> Path:
    """The folder, or its old form where a writer has just put it aside, or died then."""
    old = _old(folder)
    return old if old.is_dir() and not folder.exists() else folder


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _exchange(temporary: Path, folder: Path) -> None:
    old = _old(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(folder, old)
    os.rename(temporary, folder)
    fsync_dir(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _files(contents: Contents) -> Iterator[tuple[str, Any]]:
    limits = contents.limits
    yield f"{ENTITIES}/alias2qids.json", contents.candidates
    yield f"{ENTITIES}/qid2title.json", contents.titles
    yield f"{ENTITIES}/qid2desc.json", contents.descriptions
    yield f"{ENTITIES}/{_CONFIG}", {"max_candidates": limits.max_candidates}
    for system, names in contents.types.items():
        yield f"{TYPES}/{system}/qid2typenames.json", names
        yield f"{TYPES}/{system}/{_CONFIG}", {"max_types": limits.max_types}
    yield f"{RELATIONS}/qid2relations.json", {qid: _grouped(of) for qid, of in contents.relations.items()}
    yield f"{RELATIONS}/{_CONFIG}", {"max_connections": limits.max_connections}


def _grouped(relations: list[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, entity in relations:
        groups.setdefault(name, []).append(entity)
    return groups


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        # An entry a line: for people, and for `diff`.
        stream.write("{")
        for place, (key, of) in enumerate(sorted(value.items())):
            stream.write(",\n" if place else "\n")
            stream.write(f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(of, ensure_ascii=False)}")
        stream.write("\n}\n")
        stream.flush()
        os.fsync(stream.fileno())


def _alien(folder: Path) -> Iterator[str]:
    """Names of files that write_folder would not write."""
    ours = {
        ENTITIES: {"alias2qids.json", "qid2title.json", "qid2desc.json", _CONFIG},
        TYPES: {"qid2typenames.json", _CONFIG},
        RELATIONS: {"qid2relations.json", _CONFIG},
    }
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if not path.is_dir() and path.name not in ours.get(parts[0], set()):
            yield str(path.relative_to(folder))


@dataclass(frozen=True, slots=True)
class _File:
    """A parsed file: an object, whose entries are checked."""

    path: Path
    record: dict[str, Any]

    @classmethod
    def found(cls, folder: Path, name: str) -> _File | None:
        """The file, with or without .json. Raises DataError where it is not an object in JSON."""
        for path in (folder / f"{name}.json", folder / name):
            if path.is_dir():
                raise DataError(f"{path} is a folder (a trie of Bootleg 1.1); only JSON files are read")
            if path.exists():
                return cls(path, _parsed(path))
        return None

    @classmethod
    def needed(cls, folder: Path, name: str) -> _File:
        file = cls.found(folder, name)
        if file is None:
            raise DataError(f"{folder} has no {name}.json; an entity database needs it")
        return file

    def entries(self, right: Callable[[Any], bool], expected: str) -> Iterator[tuple[str, Any]]:
        """Yield key and value of each entry. Raises DataError at the first that is not right."""
        for key, value in self.record.items():
            if not right(value):
                shown = json.dumps(value, ensure_ascii=False)
                raise DataError(f"{self.path}: {key!r} is {shown[:80]}, expected {expected}")
            yield key, value


def _parsed(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds {kind_of(value)}, expected an object")
    return value


def _limit(folder: Path, key: str, default: int) -> int:
    path = folder / _CONFIG
    value = _parsed(path).get(key, default) if path.exists() else default
    if not is_a(value, int) or value < 1:
        raise DataError(f"{path}: {key} is {json.dumps(value)}, expected a whole number above 0")
    return int(value)


def _texts(file: _File | None) -> dict[str, str]:
    return {} if file is None else dict(file.entries(lambda value: is_a(value, str), "a text"))


def _candidates(file: _File, titles: dict[str, str]) -> dict[str, list[tuple[str, float]]]:
    found = {}
    for alias, pairs in file.entries(_are_scored, "[[entity id, score], …]"):
        candidates = [(qid, score) for qid, score in pairs]
        for qid, _ in candidates:
            if qid not in titles:
                raise DataError(f"{file.path}: candidate {qid} of {alias!r} has no title in qid2title.json")
        by_score(candidates)
        found[alias] = candidates
    return found


def _are_scored(pairs: Any) -> bool:
    return is_a(pairs, list) and all(
        is_a(pair, list)
        and len(pair) == 2
        and is_a(pair[0], str)
        and is_a(pair[1], int, float)
        and math.isfinite(pair[1])
        for pair in pairs
    )


def _are_texts(values: Any) -> bool:
    return is_a(values, list) and all(is_a(value, str) for value in values)


def _systems(folder: Path) -> list[Path]:
    parent = folder / TYPES
    return sorted(each for each in parent.iterdir() if each.is_dir()) if parent.is_dir() else []


def _types(system: Path) -> dict[str, list[str]]:
    if file := _File.found(system, "qid2typenames"):
        return dict(file.entries(_are_texts, "a list of names"))
    file = _File.needed(system, "qid2typeids")
    vocabulary = _File.needed(system, "type_vocab")
    names = {number: name for name, number in vocabulary.entries(lambda each: is_a(each, int), "a number")}
    return {
        qid: [names[number] for number in numbers]
        for qid, numbers in file.entries(
            lambda each: is_a(each, list) and all(number in names for number in each),
            f"a list of numbers of {vocabulary.path.name}",
        )
    }


def _relations(folder: Path) -> dict[str, list[tuple[str, str]]]:
    if file := _File.found(folder, "qid2relations"):
        return {
            qid: [(name, entity) for name, objects in of.items() for entity in objects]
            for qid, of in file.entries(
                lambda each: is_a(each, dict) and all(map(_are_texts, each.values())),
                "an object {relation: [entity id, …]}",
            )
        }
    adjacent = folder / "kg_adj.txt"
    return _pairs(adjacent) if adjacent.exists() else {}


def _pairs(path: Path) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        ends = line.split("\t")
        if len(ends) != 2:
            raise DataError(
                f"{path}:{number}: {line[:60]!r}, expected two entity ids with a tab between them"
            )
        found.setdefault(ends[0], []).append((UNNAMED_RELATION, ends[1]))
    return found


def _trim(contents: Contents) -> None:
    limits = contents.limits
    for candidates in contents.candidates.values():
        del candidates[limits.max_candidates :]
    for of in contents.types.values():
        for names in of.values():
            del names[limits.max_types :]
    for relations in contents.relations.values():
        del relations[limits.max_connections :]
    for table in (contents.descriptions, contents.relations, *contents.types.values()):
        for key in [key for key, value in table.items() if not value]:
            # Nothing said is the same as nothing there, for the fingerprint too.
            del table[key]
