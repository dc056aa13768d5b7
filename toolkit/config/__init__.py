"""The typed experiment: composition from YAML, overrides, checks, identity.

Its names are imported late: YAML and the checks take 45 ms, and not everybody needs them who needs a section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.system.late_names import late_names

if TYPE_CHECKING:
    from toolkit.config.checking.validate import check
    from toolkit.config.identity import run_id
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

__getattr__ = late_names(
    __name__,
    {
        **dict.fromkeys(__all__, "loading"),
        "Experiment": "schema",
        "check": "checking.validate",
        "run_id": "identity",
        "to_plain": "serialize",
        "to_yaml": "serialize",
    },
)
