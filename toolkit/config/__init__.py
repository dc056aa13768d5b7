"""The typed experiment: composition from YAML, overrides, checks, identity."""

from __future__ import annotations

from toolkit.config.checking import check
from toolkit.config.composition import Composed, compose
from toolkit.config.loading import load, load_on_file, load_resolved, load_resources
from toolkit.config.plain import identity, run_id, to_plain, to_yaml
from toolkit.config.processes import world_size
from toolkit.config.schema import Experiment

__all__ = [
    "Composed",
    "Experiment",
    "check",
    "compose",
    "identity",
    "load",
    "load_on_file",
    "load_resolved",
    "load_resources",
    "run_id",
    "to_plain",
    "to_yaml",
    "world_size",
]
