"""Experiment files in an empty working folder, as for the tests of toolkit/config."""

from __future__ import annotations

from tests.toolkit.config.conftest import broken, changed, faults, good, movies, tree, working_folder, write

__all__ = ["broken", "changed", "faults", "good", "movies", "tree", "working_folder", "write"]
