"""Checksums of a checkpoint's files, which may be of any kind. Imports no torch."""

from __future__ import annotations

import errno
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import CheckpointError
from toolkit.files import crc32

#: Version of the manifest format.
VERSION = 1
#: Read errors of a network file system that may pass. EIO is none of them: a bad sector gives it too.
_PASSING = frozenset({errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO})


def check_file(file: Path, expected: Mapping[str, Any]) -> None:
    """Compare a file with its entry in the manifest. Raises CheckpointError."""
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise CheckpointError(f"{file} is not a regular file")
        if found.st_size != expected["bytes"]:
            raise CheckpointError(f"{file} has {found.st_size} bytes, expected {expected['bytes']}")
        if crc32(file) != expected["crc32"]:
            raise CheckpointError(f"{file} is damaged: its checksum differs from the manifest")
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error


def may_pass(error: CheckpointError) -> bool:
    """Whether a checkpoint cannot be read now, but perhaps later: it may be intact."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _PASSING
