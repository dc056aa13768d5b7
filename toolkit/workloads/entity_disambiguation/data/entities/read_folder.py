"""Read an entity database. Faults name file and key."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.data.entities.contents import (
    CONFIG,
    ENTITIES,
    RELATIONS,
    TYPES,
    UNNAMED_RELATION,
    Contents,
    Limits,
    by_score,
    current_folder,
)
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import is_a, kind_of


def read_folder(folder: Path) -> Contents:
    """Read a database; if it is replaced meanwhile, the new one. Raises DataError with file and key."""
    while True:
        before = _state(folder)
        try:
            check_folder(folder)
            contents = _read(current_folder(folder))
        except (DataError, OSError):
            if _state(folder) == before:
                raise
        else:
            if _state(folder) == before:
                return contents


def _state(folder: Path) -> tuple[Path, int, int] | None:
    """The identity of the current folder; it differs after a replacement. None if it is not there."""
    current = current_folder(folder)
    try:
        found = current.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return current, found.st_ino, found.st_mtime_ns


def _read(folder: Path) -> Contents:
    of_types = [_limit(each, "max_types") for each in _systems(folder)]
    limits = Limits(
        max_candidates=_limit(folder / ENTITIES, "max_candidates"),
        max_types=max(of_types, default=Limits().max_types),
        max_connections=_limit(folder / RELATIONS, "max_connections"),
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


def check_folder(folder: Path) -> None:
    """Raise DataError if the folder is not a database."""
    if not (current_folder(folder) / ENTITIES).is_dir():
        raise DataError(
            f"{folder} is not an entity database: it has no folder {ENTITIES}; "
            "make one with `stk entities import`"
        )


def check_type_systems(folder: Path, names: Sequence[str]) -> None:
    """Raise DataError if a database lacks one of these systems of types."""
    known = [each.name for each in _systems(current_folder(folder))]
    for name in names:
        if name not in known:
            raise DataError(
                f"data.type_systems: found {name!r}, but the types in {folder} are of "
                f"{', '.join(known) or 'no system'}: name some of these, or null for all"
            )


@dataclass(frozen=True, slots=True)
class _File:
    """A parsed JSON file, which is an object."""

    path: Path
    record: dict[str, Any]

    @classmethod
    def found(cls, folder: Path, name: str) -> _File | None:
        """The file, with or without .json, or None. Raises DataError if it is not a JSON object."""
        for path in (folder / f"{name}.json", folder / name):
            if path.is_dir():
                raise DataError(f"{path} is a folder (a trie of Bootleg 1.1); only JSON files are supported")
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
        """Yield key and value of each entry. Raises DataError at the first value that is not `right`."""
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
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds {kind_of(value)}, expected an object")
    return value


def _limit(folder: Path, key: str) -> int:
    path = folder / CONFIG
    value = (_parsed(path) if path.exists() else {}).get(key, getattr(Limits(), key))
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
        if len(candidates) > 1:
            by_score(candidates)
        found[alias] = candidates
    return found


def _are_scored(pairs: Any) -> bool:
    return is_a(pairs, list) and all(
        type(pair) is list
        and len(pair) == 2
        and type(pair[0]) is str
        and type(pair[1]) in (int, float)
        and math.isfinite(pair[1])
        for pair in pairs
    )


def _are_texts(values: Any) -> bool:
    return is_a(values, list) and set(map(type, values)) <= {str}


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
    # An empty entry is the same as a missing one.
    contents.descriptions = {qid: text for qid, text in contents.descriptions.items() if text}
    contents.relations = {qid: pairs for qid, pairs in contents.relations.items() if pairs}
    for system, of in contents.types.items():
        contents.types[system] = {qid: names for qid, names in of.items() if names}
