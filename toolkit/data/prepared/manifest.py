"""The manifest of a prepared set: written last, it lists every file with its size and checksum."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.files import crc32, fsync_path, read_json, write_json

META = "meta.json"

PREPARE_AGAIN = "delete that folder and prepare the data again"


def write_manifest(folder: Path, meta: Mapping[str, Any]) -> None:
    """Flush every file to disk, then write the manifest with their sizes and checksums. Raises OSError."""
    files = {}
    for path in sorted(folder.iterdir()):
        with open(path, "rb") as stream:
            os.fsync(stream.fileno())
        files[path.name] = {"size": path.stat().st_size, "crc32": crc32(path)}
    write_json(folder / META, {**meta, "files": files})
    fsync_path(folder)


def read_manifest(path: Path, version: int, *, growing: str) -> Mapping[str, Any]:
    """Return the manifest of a folder, after checking the size of every file. Raises DataError.

    growing  a file that may have grown since
    """
    with suppress(OSError):
        if not path.is_dir():
            # A network file system may remember that the name was missing; listing refreshes it.
            os.listdir(path.parent)
    try:
        meta = read_permitted(path)
    except OSError as error:
        raise DataError(f"{path / META} cannot be read ({error})") from error
    except ValueError as error:
        raise DataError(f"{path / META} cannot be read ({error}); {PREPARE_AGAIN}") from error
    if not isinstance(meta, dict):
        raise DataError(f"{path} holds no prepared set: {META} is missing or damaged; {PREPARE_AGAIN}")
    if meta.get("version") != version:
        raise DataError(f"{path} has format {meta.get('version')}, expected {version}; {PREPARE_AGAIN}")
    for name, expected in meta["files"].items():
        size = _size(path / name)
        if size < expected["size"] or (size > expected["size"] and name != growing):
            raise DataError(f"{path / name} has {size} bytes, expected {expected['size']}; {PREPARE_AGAIN}")
    return meta


def read_permitted(path: Path) -> Any:
    """Return the content of the manifest; None without one. Raises OSError, ValueError, DataError."""
    try:
        return read_json(path / META)
    except PermissionError as error:
        raise DataError(
            f"{path} may not be read by this user: ask its owner to allow it, or set data.prepared_dir to "
            "another folder"
        ) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error})") from error
