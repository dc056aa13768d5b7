"""Write an entity database, and compute the fingerprint of its files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.files import fsync_path
from toolkit.workloads.entity_disambiguation.data.entities.contents import (
    CONFIG,
    ENTITIES,
    RELATIONS,
    TYPES,
    Contents,
    current_folder,
    old_folder,
)


def files_of(folder: Path) -> list[Path]:
    """The files of a database, sorted."""
    return sorted(each for each in current_folder(folder).rglob("*") if each.is_file())


def folder_fingerprint(folder: Path) -> str:
    """SHA-256 of a database's files. They are not parsed, which would take ten times as long."""
    folder = current_folder(folder)
    digest = hashlib.sha256()
    for path in files_of(folder):
        digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        with open(path, "rb") as stream:
            # It updates the digest of all files.
            hashlib.file_digest(stream, lambda: digest)
    return digest.hexdigest()


def write_folder(folder: Path, contents: Contents) -> None:
    """Write a database; readers find either the complete old or the complete new one.

    The folder is replaced as a whole. Raises DataError if it has other files, and OSError.
    """
    if other := sorted(_other_files(folder)):
        raise DataError(
            f"{folder} also has the file {other[0]}, which would be lost; write the database to another "
            "folder (`stk entities export` and `stk entities import --as-written`)"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    try:
        for name, value in _files(contents):
            _write(temporary / name, value)
        _exchange(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(temporary: Path, folder: Path) -> None:
    old = old_folder(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(folder, old)
    os.rename(temporary, folder)
    fsync_path(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _files(contents: Contents) -> Iterator[tuple[str, Any]]:
    limits = contents.limits
    yield f"{ENTITIES}/alias2qids.json", contents.candidates
    yield f"{ENTITIES}/qid2title.json", contents.titles
    yield f"{ENTITIES}/qid2desc.json", contents.descriptions
    yield f"{ENTITIES}/{CONFIG}", {"max_candidates": limits.max_candidates}
    for system, names in contents.types.items():
        yield f"{TYPES}/{system}/qid2typenames.json", names
        yield f"{TYPES}/{system}/{CONFIG}", {"max_types": limits.max_types}
    yield f"{RELATIONS}/qid2relations.json", {qid: _grouped(of) for qid, of in contents.relations.items()}
    yield f"{RELATIONS}/{CONFIG}", {"max_connections": limits.max_connections}


def _grouped(relations: list[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, entity in relations:
        groups.setdefault(name, []).append(entity)
    return groups


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        # One entry per line, for reading and for `diff`.
        stream.write("{")
        for place, (key, of) in enumerate(sorted(value.items())):
            stream.write(",\n" if place else "\n")
            stream.write(f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(of, ensure_ascii=False)}")
        stream.write("\n}\n")
        stream.flush()
        os.fsync(stream.fileno())


def _other_files(folder: Path) -> Iterator[str]:
    """The files of a folder that write_folder does not write."""
    ours = {
        ENTITIES: {"alias2qids.json", "qid2title.json", "qid2desc.json", CONFIG},
        TYPES: {"qid2typenames.json", CONFIG},
        RELATIONS: {"qid2relations.json", CONFIG},
    }
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if not path.is_dir() and path.name not in ours.get(parts[0], set()):
            yield str(path.relative_to(folder))
