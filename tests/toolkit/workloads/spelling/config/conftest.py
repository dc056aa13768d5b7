"""Experiment files in an empty working folder, as for the tests of toolkit/config."""

from __future__ import annotations

from tests.toolkit.config.conftest import faults, working_folder

__all__ = ["faults", "working_folder"]
