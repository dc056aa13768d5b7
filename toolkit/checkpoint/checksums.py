"""Checksums of a checkpoint's files, which may be of any kind. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import CheckpointError
from toolkit.files import crc32

#: Version of the manifest format.
VERSION = 1


def check_file(file: Path, expected: Mapping[str, Any]) -> None:
    """Compare a file with its entry in the manifest. Raises CheckpointError."""
    try:
        size = file.stat().st_size if file.is_file() else None
        if size is None:
            raise CheckpointError(f"{file} is missing")
        if size != expected["bytes"]:
            raise CheckpointError(f"{file} has {size} bytes, expected {expected['bytes']}")
        if crc32(file) != expected["crc32"]:
            raise CheckpointError(f"{file} is damaged: its checksum differs from the manifest")
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error
