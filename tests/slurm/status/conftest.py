"""A submitted run, for the tests of states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.status.folders import new_run, submitted
from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run with a submission."""
    run = new_run(tmp_path)
    submitted(run)
    return run
