"""From an experiment file and overrides to one resolved tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config.includes import Includes, config_root, mark, record, shown, unmark
from toolkit.config.interpolation import interpolate
from toolkit.config.options import SWEEP
from toolkit.config.overrides import apply
from toolkit.config.tree import Faults, Origin, Origins
from toolkit.config.yaml_files import Files, Unreadable


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


def gather(
    path: Path, overrides: Sequence[str], root: Path | None, faults: Faults, files: Files | None = None
) -> dict[str, Any]:
    """Compose as `compose` does, but record faults and leave UNKNOWN in their places.

    files   gives the run of a sweep, one of many: each file is read once for all of them, and the section
            `sweep` is left out
    Raises ConfigError where the experiment file itself cannot be read.
    """
    includes = Includes(root or config_root(path), faults, files)
    mapping = read_mapping(path, faults, files)
    if files is not None:
        mapping.pop(SWEEP, None)
    includes.tree = mark(mapping, (path,))
    apply(overrides, includes)
    includes.expand(includes.tree, ())
    return interpolate(includes.tree, faults)


def gather_sweep(path: Path, overrides: Sequence[str], root: Path | None, faults: Faults) -> Any:
    """The section `sweep` of an experiment file, overrides of its keys applied; None where there is none.

    It may be a file of its own (`sweep: ${from_file:...}`). Values stand as written, references too: they
    are composed with the experiment that gets them. Raises ConfigError where the file cannot be read.
    """
    includes = Includes(root or config_root(path), faults)
    section = read_mapping(path, faults).get(SWEEP)
    includes.tree = mark({SWEEP: section}, (path,))
    apply(overrides, includes)
    includes.open(includes.tree, SWEEP, (SWEEP,))
    return unmark(includes.tree[SWEEP])


def read_mapping(path: Path, faults: Faults, files: Files | None = None) -> dict[str, Any]:
    """The mapping that a file holds. Raises ConfigError where it holds none."""
    try:
        document = (files or Files()).read(path)
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
