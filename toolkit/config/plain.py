"""An experiment as plain values, as YAML, and its identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from typing import Any

from toolkit.config.options import is_identity
from toolkit.config.schema import Experiment, Resources
from toolkit.config.yaml_files import dump

_DIGITS = 8


def to_plain(config: Experiment | Resources) -> dict[str, Any]:
    """All fields as mappings, lists and scalars, defaults included."""
    plain: dict[str, Any] = _plain(config, lambda _: True)
    return plain


def to_yaml(config: Experiment | Resources) -> str:
    """The resolved experiment, or its resources, as YAML; `load_resolved` gives an equal one back.

    Texts stand literally, `${` too, so it is no experiment file to be composed again.
    """
    return dump(to_plain(config))


def identity(experiment: Experiment) -> str:
    """Eight hex digits of SHA-256 over all that can change the result, in canonical JSON."""
    canonical = _canonical(_plain(experiment, is_identity))
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def run_id(experiment: Experiment) -> str:
    """Name of a run and of its folder."""
    return f"{experiment.name}-{identity(experiment)}"


def _plain(value: Any, keep: Callable[[Field[Any]], bool]) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name), keep) for each in fields(value) if keep(each)}
    if isinstance(value, dict):
        return {name: _plain(inner, keep) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner, keep) for inner in value]
    return value


def _canonical(value: Any) -> Any:
    """Equal values alike: 1.0 as 1."""
    if isinstance(value, dict):
        return {name: _canonical(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_canonical(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
