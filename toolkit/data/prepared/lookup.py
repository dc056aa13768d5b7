"""Prepared sets on the disk, looked up without preparing anything. Imports nothing slow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolkit.data.prepared.manifest import META, read_permitted
from toolkit.data.sources.file_digests import NotRemembered, at_most
from toolkit.errors import DataError
from toolkit.files import read_json, read_object
from toolkit.system.output.few import few
from toolkit.workload import DataSection, silent

#: Most bytes of a source that are read for its checksum: takes a few milliseconds.
_FEW_BYTES = 4 << 20
_FINGERPRINT = re.compile(r"[0-9a-f]{16,}")
#: Files that a message names.
_NAMED = 3


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


def recorded_sources(data: DataSection, fingerprint: object) -> set[str] | None:
    """Return the checksums of the source files of the set with a fingerprint; None if they are unknown."""
    if not isinstance(fingerprint, str) or not _FINGERPRINT.fullmatch(fingerprint):
        return None
    for file in sorted(Path(data.prepared_dir).expanduser().glob(f"*-{fingerprint[:16]}/{META}")):
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            meta = read_json(file)
            if meta["fingerprint"] == fingerprint:
                return {part for each in meta["sources"] for part in each["sha256"].split(" ")}
    return None


def changed_sources(data: DataSection, fingerprint: object) -> str:
    """Name, in parentheses, the source files that the set with a fingerprint was not made from.

    Empty if they are not known. Reads as little as `place_of_prepared_set`.
    """
    recorded = recorded_sources(data, fingerprint)
    if recorded is None:
        return ""
    try:
        with at_most(_FEW_BYTES):
            others = [str(path) for path, sha256 in data.source_files(silent) if sha256 not in recorded]
    except (NotRemembered, DataError, OSError, ValueError):
        return ""
    return f" (other contents: {few(dict.fromkeys(others), _NAMED)})" if others else ""


def check_permitted(data: DataSection) -> None:
    """Raise DataError if the place of the prepared set of a data section may not be read by this user."""
    if (place := place_of_prepared_set(data)) is not None:
        # After any other error, the job may be able to read it, or makes it again.
        with suppress(OSError, ValueError):
            read_permitted(place[0])


def read_meta(path: Path) -> Mapping[str, Any]:
    """Return the manifest of a prepared set; empty if it does not exist or cannot be read."""
    return read_object(path / META)
