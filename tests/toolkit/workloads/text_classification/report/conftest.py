"""The runs that the tests of this report share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.report.report_folders import write_config
from tests.toolkit.workloads.text_classification.report.classified_runs import KIND, write_finished
from toolkit.run.run_dir import RunDir


@pytest.fixture
def finished_run(tmp_path: Path) -> RunDir:
    return write_finished(tmp_path / "sst2-1f3a9c")


@pytest.fixture
def new_run(tmp_path: Path) -> RunDir:
    """It has only its config."""
    run = RunDir(tmp_path / "sst2-0b5e11")
    write_config(run, kind=KIND)
    return run
