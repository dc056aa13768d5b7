"""An experiment as plain values and as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from functools import cache, lru_cache
from typing import Any

from toolkit.config.composition.yaml_files import dump
from toolkit.config.fields import keys_of, limits
from toolkit.config.schema import Experiment
from toolkit.config.secrets import Secret
from toolkit.registry import task_kinds

_SCALARS = frozenset({str, int, float, bool, type(None)})


def to_plain(config: Any, *, identity_only: bool = False) -> dict[str, Any]:
    """All fields as mappings, lists and scalars, defaults included; a secret becomes its reference.

    identity_only  only the fields that can change the result
    """
    plain: dict[str, Any] = _plain(config, identity_only=identity_only)
    return plain


def to_yaml(config: Any) -> str:
    """The resolved experiment, or one of its sections, as YAML; `load_resolved` returns an equal one.

    A section gets only keys that differ from the defaults: a run keeps its original code, which may know
    fewer keys than the code that submits it again. Texts are literal, including `${`, so the result must
    not be composed again as an experiment file.
    """
    plain = to_plain(config)
    if not isinstance(config, Experiment):
        usual = to_plain(type(config)())
        plain = {name: value for name, value in plain.items() if value != usual[name]}
    return "".join(section_yaml(json.dumps({name: value})) for name, value in plain.items()) or "{}\n"


def with_added_keys(stored: Any) -> Any:
    """A run's stored config, with keys that only later versions have at their defaults.

    The defaults keep the behaviour of earlier versions, so configs of several versions can be compared.
    """
    if not isinstance(stored, dict):
        return stored
    kinds = dict(_sections_of_kinds(stored))
    filled = _with_added(Experiment, stored)
    return filled | {name: _with_added(kinds[name], filled[name]) for name in kinds if name in filled}


def _with_added(cls: type, plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    added = {name: default for name, default in _added(cls).items() if name not in plain}
    inner = {name: _with_added(section, plain[name]) for name, section in _sections(cls) if name in plain}
    return {**plain, **added, **inner}


def _sections_of_kinds(stored: Mapping[str, Any]) -> Iterator[tuple[str, type]]:
    """Yield the sections that depend on the kinds of the task and of the model, if these are installed."""
    sections = (stored.get(name) for name in ("task", "model"))
    task, model = (str(each.get("kind")) if isinstance(each, dict) else "" for each in sections)
    if (spec := task_kinds().get(task)) is not None:
        yield from (("task", spec.config), ("data", spec.data))
        if model in spec.models:
            yield "model", spec.models[model][0]


@cache
def _sections(cls: type) -> Sequence[tuple[str, type]]:
    """The sections within a section, by name."""
    made: Iterator[tuple[str, Any]] = ((each.name, each.default_factory) for each in keys_of(cls))
    return [(name, section) for name, section in made if isinstance(section, type) and is_dataclass(section)]


def flat(plain: Any, key: str = "") -> dict[str, Any]:
    """The scalars and lists of a plain value by dotted key; an empty mapping has none."""
    if not isinstance(plain, dict):
        return {key: plain}
    found: dict[str, Any] = {}
    for name, inner in plain.items():
        found.update(flat(inner, f"{key}.{name}" if key else str(name)))
    return found


@lru_cache(maxsize=256)
def section_yaml(section: str) -> str:
    """One top-level key, given as JSON; cached, because the runs of a sweep differ in few keys."""
    return dump(json.loads(section))


def _plain(value: Any, *, identity_only: bool) -> Any:
    # Most values are scalars, and a sweep has a hundred of them in each run.
    if value.__class__ in _SCALARS:
        return value
    if isinstance(value, Secret):
        return value.reference
    if isinstance(value, dict):
        return {name: _plain(inner, identity_only=identity_only) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner, identity_only=identity_only) for inner in value]
    if is_dataclass(value):
        names = _names(value.__class__, identity_only)
        plain = {name: _plain(getattr(value, name), identity_only=identity_only) for name in names}
        return _as_before(type(value), plain) if identity_only else plain
    return value


def _as_before(cls: type, plain: dict[str, Any]) -> dict[str, Any]:
    """Return the output of earlier versions: without later keys that have their defaults."""
    for name, others in _counting_as(cls).items():
        plain[name] = others.get(plain[name], plain[name])
    for name, default in _added(cls).items():
        if plain.get(name, default) == default:
            plain.pop(name, None)
    return plain


@cache
def _added(cls: type) -> Mapping[str, Any]:
    # In the form in which they are compared.
    added = [each for each in keys_of(cls) if limits(each).added]
    return {
        each.name: each.default
        if each.default_factory is MISSING
        else _plain(each.default_factory(), identity_only=True)
        for each in added
    }


@cache
def _counting_as(cls: type) -> Mapping[str, Mapping[Any, Any]]:
    return {each.name: limits(each).counts_as for each in keys_of(cls) if limits(each).counts_as}


@cache
def _names(cls: type, identity_only: bool) -> tuple[str, ...]:
    """The fields of a dataclass, or those that can change the result."""
    return tuple(each.name for each in keys_of(cls) if not identity_only or limits(each).identity)
