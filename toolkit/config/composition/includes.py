"""`${from_file:model/name.yaml}`: files that replace a value."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.composition.interpolation import resolve_text
from toolkit.config.composition.yaml_files import (
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    Files,
    Unreadable,
    is_typed,
    mapped,
)
from toolkit.config.faults import Faults
from toolkit.config.origins import COMMAND_LINE, UNKNOWN, Key, Origin

#: Maximum number of includes in an experiment, each counted as often as it is read.
_MAX_FILES = 1000

_INCLUDE = re.compile(r"\s*\$\{\s*from_file\s*:(.*)\}\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Include:
    """A value that is yet to be read from a file.

    path    as written, references included
    files   the files that led here, outermost first
    """

    path: str
    files: tuple[Path, ...]


def config_root(path: Path) -> Path:
    """The folder that includes are relative to, for an experiment file.

    STK_CONFIG_DIR; else the nearest folder named `configs` above the file; else the file's own.
    """
    if folder := os.environ.get("STK_CONFIG_DIR"):
        return Path(folder)
    above = [parent for parent in path.absolute().parents if parent.name == "configs"]
    return above[0] if above else path.parent


def shown(path: Path) -> str:
    """A path for messages: relative to the working folder if inside it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def origin_in(path: Path, line: int = 0) -> Origin:
    """The origin of a line of a file; the command line if its text was written there."""
    return COMMAND_LINE if is_typed(path) else Origin(shown(path), line)


def find_includes(value: Any, files: tuple[Path, ...]) -> Any:
    """Replace every `${from_file:…}` by an Include; mappings and lists are changed in place."""
    if isinstance(value, dict):
        value.update({name: find_includes(inner, files) for name, inner in value.items()})
    elif isinstance(value, list):
        value[:] = [find_includes(inner, files) for inner in value]
    elif isinstance(value, str) and (match := _INCLUDE.fullmatch(value)) and _is_balanced(match[1]):
        return Include(match[1].strip(), files)
    return value


def restore_includes(value: Any) -> Any:
    """A value as it was before `find_includes`."""
    return mapped(value, lambda leaf: f"${{from_file:{leaf.path}}}" if isinstance(leaf, Include) else leaf)


class Includes:
    """Reads the included files of one experiment; their paths may refer to its `tree`."""

    def __init__(self, root: Path, faults: Faults, files: Files | None = None) -> None:
        self.root = root
        self.faults = faults
        self.files = files or Files()
        self.tree: dict[str, Any] = {}
        self._files_read = self._values_read = 0

    def expand(self, container: Any, key: Key) -> None:
        """Read every include within a mapping or list, recursively."""
        names = list(container) if isinstance(container, dict) else range(len(container))
        for name in names:
            inner = self.open(container, name, (*key, str(name)))
            if isinstance(inner, dict | list):
                self.expand(inner, (*key, str(name)))

    def open(self, container: Any, name: Any, key: Key) -> Any:
        """The value at a place, in which an include is replaced by the content of its file."""
        # A file may hold only an include of another file.
        while isinstance(value := container[name], Include):
            container[name] = self._read(value, key)
        return value

    def _read(self, include: Include, key: Key) -> Any:
        name = include.path
        if len(name) >= 2 and name[0] == name[-1] and name[0] in "'\"":
            name = name[1:-1]
        text = resolve_text(name, self.tree, key, self.faults)
        if text is None:
            return UNKNOWN
        path = self.root / text
        known = [file.resolve() for file in include.files]
        if len(key) > MAX_DEPTH:
            self.faults.add(key, f"the included files are nested more than {MAX_DEPTH} deep")
            return UNKNOWN
        if path.resolve() in known:
            chain = [*include.files[known.index(path.resolve()) :], path]
            self.faults.add(key, f"the files include each other: {' -> '.join(map(shown, chain))}")
            return UNKNOWN
        return self._load(path, (*include.files, path), key)

    def _load(self, path: Path, files: tuple[Path, ...], key: Key) -> Any:
        """The value of a file with its includes found; the origins of its keys are recorded under `key`."""
        try:
            document = self.files.read(path)
        except Unreadable as error:
            problem = f"the included file {shown(path)}: {error.problem}"
            self.faults.add(key, problem, error.hint or f"includes are relative to {shown(self.root)}")
            return UNKNOWN
        self._count(document, key)
        if document.value is None:
            self.faults.add(
                key, f"the included file {shown(path)} is empty, expected keys, a list or a value"
            )
            return UNKNOWN
        if not isinstance(document.value, dict | list):
            self.faults.origins.put(key, Origin(shown(path)))
        record(document, path, key, self.faults)
        return find_includes(document.value, files)

    def _count(self, document: Document, key: Key) -> None:
        """Raise ConfigError if files that include others more than once would fill the memory."""
        self._files_read += 1
        self._values_read += document.size
        if self._files_read > _MAX_FILES or self._values_read > MAX_VALUES:
            most = f"{_MAX_FILES:,} includes and {MAX_VALUES:,} values"
            self.faults.add(key, f"the included files are too many or too large: at most {most}")
            self.faults.raise_any()


def record(document: Document, path: Path, key: Key, faults: Faults) -> None:
    """Note the origin of a document's keys, which are placed under `key`, and its faults."""
    for inner, line in document.lines.items():
        faults.origins.put((*key, *inner), origin_in(path, line))
    for inner, line, problem, hint in document.faults:
        faults.add((*key, *inner), problem, hint, origin_in(path, line), unsure=False)


def _is_balanced(text: str) -> bool:
    """Whether the braces of a text are balanced: otherwise those around it are not one pair."""
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0
