"""Find checkpoints that other runs start from: the paths in their configs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path

from toolkit.config.composition.yaml_files import Unreadable, parse, read_text
from toolkit.config.fields import limits
from toolkit.config.schema import Train
from toolkit.registry import sections_of_kinds
from toolkit.run.run_dir import RunDir


@cache
def _keys() -> tuple[tuple[str, str], ...]:
    """Return section and key of each option that names a file of an earlier run, in all installed tasks."""
    sections = {("train", Train), *sections_of_kinds()}
    found = {(name, each.name) for name, of in sections for each in fields(of) if limits(each).run}
    return tuple(sorted(found))


@cache
def _given() -> re.Pattern[str]:
    """Return a pattern that matches a config in which one of these keys has a value."""
    names = "|".join(sorted({key for _, key in _keys()}))
    return re.compile(rf"^ +({names}): (?!null\s*$)", re.MULTILINE)


def references(runs: Iterable[RunDir]) -> dict[Path, str]:
    """Return the resolved paths in configs of runs, each with the run's id."""
    return {path: run.run_id for run in runs for path in _named_by(run)}


def _named_by(run: RunDir) -> Iterator[Path]:
    # Most configs have no such path, and parsing YAML is slow.
    try:
        text = read_text(run.config)
        tree = parse(text).value if _given().search(text) else {}
    except Unreadable:
        return
    for section, key in _keys():
        values = tree.get(section) if isinstance(tree, Mapping) else None
        if isinstance(values, Mapping) and isinstance(name := values.get(key), str):
            with suppress(OSError, RuntimeError, ValueError):
                yield Path(name).expanduser().resolve()


def user_of(folder: Path, named: Mapping[Path, str]) -> str | None:
    """Return the id of the run whose config names this folder or a file in it; None without one."""
    target = folder.resolve()
    return next((run_id for path, run_id in named.items() if path.is_relative_to(target)), None)
