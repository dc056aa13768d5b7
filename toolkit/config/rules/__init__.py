"""What must hold between several keys of an experiment, by the section to blame."""

from __future__ import annotations

# They register their rules when they are imported.
from toolkit.config.rules import (  # noqa: F401
    data,
    entities,
    resources,
    spelling,
    spelling_correction,
    spelling_models,
    training,
)
from toolkit.config.rules.book import check_rules

__all__ = ["check_rules"]
