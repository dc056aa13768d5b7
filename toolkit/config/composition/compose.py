"""Compose an experiment file and overrides to one resolved tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.config.composition.begun import filled, marked
from toolkit.config.composition.includes import (
    Includes,
    config_root,
    find_includes,
    origin_in,
    record,
    restore_includes,
)
from toolkit.config.composition.interpolation import interpolate
from toolkit.config.composition.overrides import apply
from toolkit.config.composition.yaml_files import Files, Unreadable
from toolkit.config.faults import Faults
from toolkit.config.fields import SWEEP
from toolkit.config.origins import Key, Origins


def file_faults(path: Path) -> Faults:
    """An empty collection of faults for an experiment file."""
    return Faults(Origins(origin_in(path)))


def gather(
    path: Path, overrides: Sequence[str], root: Path | None, faults: Faults, files: Files | None = None
) -> dict[str, Any]:
    """Read an experiment with its includes, apply the overrides, resolve the references.

    Faults are recorded, and UNKNOWN replaces their values. Types and limits are not checked.

    files   given for the runs of a sweep: each file is read once for all of them, and the section
            `sweep` is left out
    Raises ConfigError if the experiment file itself cannot be read.
    """
    includes = Includes(root or config_root(path), faults, files)
    mapping = read_mapping(path, faults, files)
    if files is not None:
        mapping.pop(SWEEP, None)
    includes.tree = find_includes(mapping, (path,))
    apply(overrides, includes)
    includes.expand(includes.tree, ())
    return interpolate(includes.tree, faults)


def gather_sweep(path: Path, overrides: Sequence[str], faults: Faults) -> Any:
    """The section `sweep` of an experiment file with the overrides of its keys; None if it has none.

    It may be a separate file (`sweep: ${from_file:...}`). Values stay as written, references too: they
    are composed with the experiment that gets them. Raises ConfigError if the file cannot be read.
    """
    includes = Includes(config_root(path), faults)
    section = read_mapping(path, faults).get(SWEEP)
    includes.tree = find_includes({SWEEP: section}, (path,))
    apply(overrides, includes)
    includes.open(includes.tree, SWEEP, (SWEEP,))
    section = marked(includes.tree[SWEEP], (SWEEP,), faults.origins)
    return restore_includes(filled(section, None, (SWEEP,)))


def read_mapping(path: Path, faults: Faults, files: Files | None = None, key: Key = ()) -> dict[str, Any]:
    """The mapping in a file; its origins are recorded under `key`. Raises ConfigError if it holds none."""
    try:
        document = (files or Files()).read(path)
        if document.value is None:
            raise Unreadable("the file is empty, expected `key: value` lines")
        if not isinstance(document.value, dict):
            kind = "a list" if isinstance(document.value, list) else "a single value"
            raise Unreadable(f"the top level is {kind}, expected `key: value` lines")
    except Unreadable as error:
        faults.add(key, error.problem, error.hint, origin_in(path, error.line))
        faults.raise_any()
        raise
    record(document, path, key, faults)
    mapping: dict[str, Any] = document.value
    return mapping
