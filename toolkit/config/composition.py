"""From an experiment file and overrides to one resolved tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.includes import Includes, config_root, mark, record, shown
from toolkit.config.interpolation import interpolate
from toolkit.config.overrides import apply
from toolkit.config.tree import Faults, Origin, Origins
from toolkit.config.yaml_files import Unreadable, parse, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A resolved tree of plain values, and the origin of every key."""

    tree: dict[str, Any]
    origins: Origins


def compose(path: Path, overrides: Sequence[str] = (), config_root: Path | None = None) -> Composed:
    """Read an experiment with its includes, apply the overrides, resolve the references.

    Raises ConfigError with all faults of composition. Types and limits are not looked at.
    """
    faults = file_faults(path)
    tree = gather(path, overrides, config_root, faults)
    faults.raise_any()
    return Composed(tree=tree, origins=faults.origins)


def file_faults(path: Path) -> Faults:
    """An empty collection of faults for an experiment file."""
    return Faults(Origins(Origin(shown(path))))


def gather(path: Path, overrides: Sequence[str], root: Path | None, faults: Faults) -> dict[str, Any]:
    """Compose as `compose` does, but record faults and leave UNKNOWN in their places.

    Raises ConfigError where the experiment file itself cannot be read.
    """
    includes = Includes(root or config_root(path), faults)
    includes.tree = mark(read_mapping(path, faults), (path,))
    apply(overrides, includes)
    includes.expand(includes.tree, ())
    return interpolate(includes.tree, faults)


def read_mapping(path: Path, faults: Faults) -> dict[str, Any]:
    """The mapping that a file holds. Raises ConfigError where it holds none."""
    try:
        document = parse(read_text(path))
        if document.value is None:
            raise Unreadable("the file is empty, expected `key: value` lines")
        if not isinstance(document.value, dict):
            raise Unreadable(f"the top level is {_kind(document.value)}, expected `key: value` lines")
    except Unreadable as error:
        faults.add((), error.problem, error.hint, Origin(shown(path), error.line))
        faults.raise_any()
        raise
    record(document, path, (), faults)
    mapping: dict[str, Any] = document.value
    return mapping


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a single value"
