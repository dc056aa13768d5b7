"""Keys of an experiment file, and the allowed values of some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from toolkit.config import load
from toolkit.config.fields import SWEEP, keys_of, limits
from toolkit.config.sections import experiment_type
from toolkit.errors import UserError
from toolkit.registry import sections_of_kinds, task_kinds

#: Sections whose dataclass depends on the kind.
_OF_KINDS = ("task", "data", "model")


def keys(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return every key that can be set, such as resources.nodes, with its choices; empty for free values.

    words   of a command. The keys are those of the task of its last YAML file, with the words key=value
            after it or only those that set kinds; those of all tasks if that is no valid experiment
    """
    tasks = list(task_kinds().values())
    wholes = {experiment_type(task.experiment) for task in tasks}
    sections = list(sections_of_kinds())
    with suppress(Exception):
        files = [word for word in words if "=" not in word and word.endswith((".yaml", ".yml"))]
        place = words.index(files[-1])
        overrides = [word for word in words[place + 1 :] if "=" in word and not word.startswith("-")]
        path, no_sweep = Path(words[place]).expanduser(), f"{SWEEP}=null"
        try:
            experiment = load(path, [*overrides, no_sweep])
        except UserError:
            # Several values for a sweep, or a fault.
            kinds = [word for word in overrides if word.startswith(("task.kind=", "model.kind="))]
            experiment = load(path, [*kinds, no_sweep])
        tasks, wholes = [task_kinds()[experiment.task.kind]], {type(experiment)}
        sections = [(name, type(getattr(experiment, name, None))) for name in _OF_KINDS]
    found: dict[str, tuple[str, ...]] = {}
    for whole in wholes:
        hints = get_type_hints(whole)
        for section in keys_of(whole):
            if is_dataclass(hints[section.name]):
                found.update(_keys(section.name, hints[section.name]))
            elif section.name not in _OF_KINDS:
                found[section.name] = ()
    for prefix, kind in sections:
        for key, choices in _keys(prefix, kind) if is_dataclass(kind) else ():
            found[key] = found.get(key, ()) or choices
    found["task.kind"] = tuple(task_kinds())
    found["model.kind"] = tuple(sorted({name for task in tasks for name in task.models}))
    return dict(sorted(found.items()))


def _keys(prefix: str, of: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in fields(of):
        choices = tuple(map(str, limits(each).choices))
        if not choices and each.type in ("bool", bool):
            choices = ("true", "false")
        yield f"{prefix}.{each.name}", choices
