"""Prepared sets on the disk, looked up without preparing anything. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolkit.data.prepared.manifest import META, read_permitted
from toolkit.data.sources.file_digests import NotRemembered, at_most
from toolkit.errors import DataError
from toolkit.files import read_object
from toolkit.workload import DataSection, silent

#: Most bytes of a source that are read for its checksum: takes a few milliseconds.
_FEW_BYTES = 4 << 20


def find_prepared_set(data: DataSection) -> Path | None:
    """Folder of the prepared set of a data section; None if it does not exist or is not known.

    Reads as little as `place_of_prepared_set`.
    """
    if (place := place_of_prepared_set(data)) is None:
        return None
    path, fingerprint = place
    return path if read_meta(path).get("fingerprint") == fingerprint else None


def place_of_prepared_set(data: DataSection) -> tuple[Path, str] | None:
    """Folder and fingerprint of the prepared set of a data section; None if they are not known.

    Large sources without a remembered checksum are not read, and no hub is queried.
    """
    try:
        with at_most(_FEW_BYTES):
            return data.prepared_place(silent)
    except (NotRemembered, DataError, OSError, ValueError):
        return None


def check_permitted(data: DataSection) -> None:
    """Raise DataError if the place of the prepared set of a data section may not be read by this user."""
    if (place := place_of_prepared_set(data)) is not None:
        # After any other error, the job may be able to read it, or makes it again.
        with suppress(OSError, ValueError):
            read_permitted(place[0])


def read_meta(path: Path) -> Mapping[str, Any]:
    """Return the manifest of a prepared set; empty if it does not exist or cannot be read."""
    return read_object(path / META)
