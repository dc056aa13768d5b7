"""Installed distributions, and the entry points that they register.

Finds the same as importlib.metadata, which takes 20 ms to import, most of it for the parser of METADATA.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any

ENTRY_POINTS = "entry_points.txt"
_METADATA = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """An installed distribution: its metadata folder, and the text of its entry points."""

    folder: Path
    entry_points: str

    def field(self, name: str) -> str:
        """A field of its metadata, such as Version. Raises OSError, StopIteration."""
        return next(self.fields(name))

    def fields(self, name: str) -> Iterator[str]:
        """All values of a field that may occur several times, such as Requires-Dist. Raises OSError."""
        text = (self.folder / _METADATA[self.folder.suffix]).read_text(encoding="utf-8")
        start = f"{name}: "
        return (line.removeprefix(start) for line in text.splitlines() if line.startswith(start))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A name that a distribution registers in a group for its code, "module:attribute"."""

    name: str
    group: str
    code: str
    distribution: Distribution

    def load(self) -> Any:
        """Import the code."""
        return load_code(self.code)


def load_code(code: str) -> Any:
    """Import "module:attribute"; the attribute may contain dots."""
    module, _, name = code.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def distribution(name: str) -> Distribution:
    """The installed distribution with this name. Raises KeyError."""
    return _distributions()[_normalized(name)]


@cache
def entry_points() -> tuple[EntryPoint, ...]:
    """The entry points of all installed distributions."""
    return tuple(point for each in _distributions().values() for point in _points_of(each))


def editable_folders() -> Iterator[Path]:
    """Yield the source folders of distributions that are installed by `pip install -e`."""
    from urllib.parse import unquote, urlsplit  # not for each command

    for each in _distributions().values():
        with suppress(ValueError, LookupError, TypeError):
            found = json.loads(_read(each.folder / "direct_url.json") or "{}")
            if found["dir_info"]["editable"]:
                yield Path(unquote(urlsplit(found["url"]).path))


@cache
def _distributions() -> dict[str, Distribution]:
    """Distributions by name; of two with the same name, the first on sys.path."""
    found: dict[str, Distribution] = {}
    for folder in _folders():
        name = _normalized(folder.name.removesuffix(folder.suffix).partition("-")[0])
        if name not in found:
            found[name] = Distribution(folder=folder, entry_points=_read(folder / ENTRY_POINTS))
    return found


def _folders() -> Iterator[Path]:
    for place in sys.path:
        try:
            # An empty entry, as with `python -c`, is the working directory, which may change later.
            folder = os.path.abspath(place)
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (Path(folder, name) for name in names if name.endswith(tuple(_METADATA)))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""


def _normalized(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


def _points_of(distribution: Distribution) -> Iterator[EntryPoint]:
    group = ""
    for line in map(str.strip, distribution.entry_points.splitlines()):
        if line.startswith("["):
            group = line.strip("[]")
        elif "=" in line and not line.startswith("#"):
            name, _, code = line.partition("=")
            # Extras, which only installers need, may follow in brackets.
            code = code.partition("[")[0].strip()
            yield EntryPoint(name=name.strip(), group=group, code=code, distribution=distribution)
