"""The typed experiment: composition from YAML, overrides, checks, identity.

Its names are imported late: YAML and the checks take 45 ms, and users of one section do not need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.config.checking.validate import check as check
    from toolkit.config.identity import run_id as run_id
    from toolkit.config.loading import load as load
    from toolkit.config.loading import load_on_file as load_on_file
    from toolkit.config.loading import load_resolved as load_resolved
    from toolkit.config.loading import load_to_run as load_to_run
    from toolkit.config.loading import load_with_origins as load_with_origins
    from toolkit.config.schema import Experiment as Experiment
    from toolkit.config.serialize import to_plain as to_plain
    from toolkit.config.serialize import to_yaml as to_yaml

_PLACES = {
    "Experiment": "schema",
    "check": "checking.validate",
    "load": "loading",
    "load_on_file": "loading",
    "load_resolved": "loading",
    "load_to_run": "loading",
    "load_with_origins": "loading",
    "run_id": "identity",
    "to_plain": "serialize",
    "to_yaml": "serialize",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
