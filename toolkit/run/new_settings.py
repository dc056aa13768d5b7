"""Settings that may change when a run continues, because they are not part of its identity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from toolkit.config import to_plain
from toolkit.config.composition.compose import file_faults, read_mapping
from toolkit.config.composition.yaml_files import dump
from toolkit.config.fields import keys_of, limits
from toolkit.config.schema import Experiment
from toolkit.config.serialize import section_yaml
from toolkit.files import write_atomic
from toolkit.run.run_dir import RunDir

_SECTIONS = ("train", "checkpoint", "data")


class _Change(NamedTuple):
    """A changed key; `is_known`: the run began with it, and knows it; `is_kept`: it keeps `before`."""

    section: str
    name: str
    before: Any
    now: Any
    is_known: bool
    is_kept: bool


def take_new_settings(run: RunDir, experiment: Experiment) -> None:
    """Write the changed settings of an experiment into the config of its run, which must not be live.

    Also numbers that are equal but written in another way, which a program may refuse: 100000 for 1e5.
    """
    if run.result.exists() or not run.config.exists():
        return
    before = read_mapping(run.config, file_faults(run.config))
    stored = _as_written(before, to_plain(experiment))
    for each in _changes(run, experiment):
        if each.is_known and not each.is_kept:
            stored[each.section][each.name] = each.now
    if repr(stored) != repr(before):
        write_atomic(run.config, "".join(dump({name: value}) for name, value in stored.items()))


def _as_written(stored: Any, now: Any) -> Any:
    """Return the stored values. A value that equals today's is written as today's: 100000 for 1e5."""
    if isinstance(stored, dict) and isinstance(now, dict):
        return {name: _as_written(value, now.get(name)) for name, value in stored.items()}
    return now if stored == now else stored


def setting_messages(runs: Iterable[tuple[RunDir, Experiment]]) -> Iterator[str]:
    """Yield the changes with which runs continue: one line for runs with equal changes."""
    found: dict[str, list[str]] = {}
    for run, experiment in runs:
        if run.result.exists():
            continue
        if kept := kept_values(run, experiment):
            found.setdefault(f"with {kept}", []).append(run.run_id)
        changes = [each for each in _changes(run, experiment) if not each.is_kept]
        if taken := ", ".join(map(_key, (each for each in changes if each.is_known))):
            found.setdefault(f"with {taken}", []).append(run.run_id)
        if others := ", ".join(map(_key, (each for each in changes if not each.is_known))):
            anew = "`stk submit FILE --fresh` starts anew"
            how = f"without {others}, which its own code may not know ({anew})"
            found.setdefault(how, []).append(run.run_id)
    for how, ids in found.items():
        yield f"{ids[0]} continues {how}" if len(ids) == 1 else f"{len(ids)} runs continue {how}"


def kept_values(run: RunDir, experiment: Experiment) -> str:
    """Name values of a run that its identity takes for equal to those of the experiment; empty if none."""
    found = (each for each in _changes(run, experiment) if each.is_kept)
    kept = ", ".join(f"{each.section}.{each.name}={each.before}, not {each.now}" for each in found)
    return f"{kept} (name=… gives the experiment its own run)" if kept else ""


def _key(change: _Change) -> str:
    was = f" (was {_text(change.before)})" if change.is_known else ""
    return f"{change.section}.{change.name}={_text(change.now)}{was}"


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def _changes(run: RunDir, experiment: Experiment) -> list[_Change]:
    """Return the changes; none if the run is new."""
    if not run.config.exists():
        return []
    plain, text = to_plain(experiment), run.config.read_text(encoding="utf-8", errors="replace")
    given = {name: plain[name] for name in _SECTIONS if name in plain}
    # Without parsing, which takes long for the many runs of a sweep.
    if all(section_yaml(json.dumps({name: value})) in text for name, value in given.items()):
        return []
    stored = read_mapping(run.config, file_faults(run.config))
    changes = []
    for section, now in given.items():
        known = stored.get(section)
        if not isinstance(known, dict):
            continue
        for key in keys_of(getattr(experiment, section)):
            before, is_kept = known.get(key.name, key.default), limits(key).identity
            # Other keys that are part of the identity have the same values.
            is_compared = not is_kept or (limits(key).counts_as and key.name in known)
            if is_compared and before != now.get(key.name, key.default):
                changes.append(_Change(section, key.name, before, now[key.name], key.name in known, is_kept))
    return changes
