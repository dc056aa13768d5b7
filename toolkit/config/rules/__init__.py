"""What must hold between several keys of an experiment, by the section to blame."""

from __future__ import annotations

# They register their rules when they are imported.
from toolkit.config.rules import data, entities, resources, spelling, training  # noqa: F401
from toolkit.config.rules.book import check_rules

__all__ = ["check_rules"]
