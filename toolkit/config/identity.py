"""The identity of an experiment, and the name of its run's folder."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from toolkit.config.composition.yaml_files import mapped
from toolkit.config.schema import Experiment
from toolkit.config.serialize import to_plain

_DIGITS = 8


def identity(experiment: Experiment) -> str:
    """Eight hex digits of SHA-256 over all keys that can change the result, in canonical JSON."""
    canonical = mapped(to_plain(experiment, identity_only=True), _canonical)
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def run_id(experiment: Experiment) -> str:
    """Name of a run and of its folder."""
    return f"{experiment.name}-{identity(experiment)}"


def _canonical(value: Any) -> Any:
    """Write equal values the same way: 1.0 as 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
