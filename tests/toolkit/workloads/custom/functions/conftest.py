"""A user's project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.own_digits import write_digits


@pytest.fixture
def config(empty_folder: Path) -> Path:
    """The experiment file of the project."""
    return write_digits(empty_folder / "project")
