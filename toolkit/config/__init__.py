"""The typed experiment: composition from YAML, overrides, checks, identity."""

from __future__ import annotations

from toolkit.config.checking.validate import check
from toolkit.config.identity import identity, run_id
from toolkit.config.loading import (
    load,
    load_on_file,
    load_resolved,
    load_submitted,
    load_to_run,
    load_with_origins,
)
from toolkit.config.schema import Experiment
from toolkit.config.serialize import to_plain, to_yaml

__all__ = [
    "Experiment",
    "check",
    "identity",
    "load",
    "load_on_file",
    "load_resolved",
    "load_submitted",
    "load_to_run",
    "load_with_origins",
    "run_id",
    "to_plain",
    "to_yaml",
]
