"""Checkpoints that runs begin with: the folders that configs name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from toolkit.rundir import RunDir

#: Keys of an experiment that name what an earlier run has left, and that are given.
_NAMED = re.compile(rb"^ +(start_from_checkpoint|repair_run): (?!null\s*$)", re.MULTILINE)
_KEYS = (("train", "start_from_checkpoint"), ("model", "repair_run"))


def references(runs: Iterable[RunDir]) -> dict[Path, str]:
    """What runs begin with or build on: each path that a config names, resolved, with the run's id."""
    return {path: run.run_id for run in runs for path in _named_by(run)}


def _named_by(run: RunDir) -> Iterator[Path]:
    # Most configs name nothing, and reading them as YAML takes long.
    try:
        text = run.config.read_bytes()
        tree = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if _NAMED.search(text) else {}
    except (OSError, yaml.YAMLError):
        return
    for section, key in _KEYS:
        values = tree.get(section) if isinstance(tree, Mapping) else None
        if isinstance(values, Mapping) and isinstance(name := values.get(key), str):
            yield Path(name).expanduser().resolve()


def user_of(folder: Path, named: Mapping[Path, str]) -> str | None:
    """The run that names this folder or something in it; None where none does."""
    target = folder.resolve()
    return next((run_id for path, run_id in named.items() if path.is_relative_to(target)), None)
