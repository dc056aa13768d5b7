"""Keys of an experiment file, and the allowed values of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from toolkit.config.fields import keys_of, limits
from toolkit.config.sections import experiment_type
from toolkit.registry import sections_of_kinds, task_kinds

#: Sections whose dataclass depends on the kind; the keys of all kinds are candidates.
_OF_KINDS = ("task", "data", "model")


def keys() -> dict[str, tuple[str, ...]]:
    """Return every key that can be set, such as resources.nodes, with its choices; empty for free values."""
    found: dict[str, tuple[str, ...]] = {}
    for whole in {None, *(task.experiment for task in task_kinds().values())}:
        experiment = experiment_type(whole)
        hints = get_type_hints(experiment)
        for section in keys_of(experiment):
            if is_dataclass(hints[section.name]):
                found.update(_keys(section.name, hints[section.name]))
            elif section.name not in _OF_KINDS:
                found[section.name] = ()
    for prefix, kind in sections_of_kinds():
        for key, choices in _keys(prefix, kind):
            found[key] = found.get(key, ()) or choices
    found["task.kind"] = tuple(task_kinds())
    found["model.kind"] = tuple(sorted({name for task in task_kinds().values() for name in task.models}))
    return dict(sorted(found.items()))


def _keys(prefix: str, of: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in fields(of):
        choices = tuple(map(str, limits(each).choices))
        if not choices and each.type in ("bool", bool):
            choices = ("true", "false")
        yield f"{prefix}.{each.name}", choices
