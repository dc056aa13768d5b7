"""An experiment as plain values, as YAML, and its identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from toolkit.config.options import is_identity
from toolkit.config.schema import Experiment, Resources
from toolkit.config.yaml_files import dump

_DIGITS = 8
_SCALARS = frozenset({str, int, float, bool, type(None)})


def to_plain(config: Experiment | Resources) -> dict[str, Any]:
    """All fields as mappings, lists and scalars, defaults included."""
    plain: dict[str, Any] = _plain(config, identity_only=False)
    return plain


def to_yaml(config: Experiment | Resources) -> str:
    """The resolved experiment, or its resources, as YAML; `load_resolved` gives an equal one back.

    Of resources alone only what is unlike the defaults: a run keeps the code that it began with, which may
    know fewer keys than what submits it again. Texts stand literally, `${` too, so it is no experiment file
    to be composed again.
    """
    plain = to_plain(config)
    if isinstance(config, Resources):
        usual = to_plain(Resources())
        plain = {name: value for name, value in plain.items() if value != usual[name]}
    return "".join(_section_yaml(json.dumps({name: value})) for name, value in plain.items()) or "{}\n"


@lru_cache(maxsize=256)
def _section_yaml(section: str) -> str:
    """One key of the top level, from JSON: the runs of a sweep differ in few of them."""
    return dump(json.loads(section))


def identity(experiment: Experiment) -> str:
    """Eight hex digits of SHA-256 over all that can change the result, in canonical JSON."""
    canonical = _canonical(_plain(experiment, identity_only=True))
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def run_id(experiment: Experiment) -> str:
    """Name of a run and of its folder."""
    return f"{experiment.name}-{identity(experiment)}"


def _plain(value: Any, *, identity_only: bool) -> Any:
    # Most values are scalars, and a sweep has a hundred of them in each run.
    if value.__class__ in _SCALARS:
        return value
    if isinstance(value, dict):
        return {name: _plain(inner, identity_only=identity_only) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner, identity_only=identity_only) for inner in value]
    if is_dataclass(value):
        names = _names(value.__class__, identity_only)
        return {name: _plain(getattr(value, name), identity_only=identity_only) for name in names}
    return value


@cache
def _names(cls: type, identity_only: bool) -> tuple[str, ...]:
    """The fields of a dataclass, or those that can change the result."""
    return tuple(each.name for each in fields(cls) if not identity_only or is_identity(each))


def _canonical(value: Any) -> Any:
    """Equal values alike: 1.0 as 1."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {name: _canonical(inner) for name, inner in value.items()}
    return [_canonical(inner) for inner in value] if isinstance(value, list) else value
