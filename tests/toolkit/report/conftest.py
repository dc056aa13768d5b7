"""Runs that the report's tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.report.report_folders import write_config, write_finished
from toolkit.run.run_dir import RunDir


@pytest.fixture
def finished_run(tmp_path: Path) -> RunDir:
    return write_finished(tmp_path / "sst2-1f3a9c")


@pytest.fixture
def new_run(tmp_path: Path) -> RunDir:
    """A run of which only the config is there."""
    run = RunDir(tmp_path / "sst2-0b5e11")
    write_config(run)
    return run
