"""The runs that the tests of this report share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.text_classification.report.classified_runs import write_finished, write_new
from toolkit.run.run_dir import RunDir


@pytest.fixture
def finished_run(tmp_path: Path) -> RunDir:
    return write_finished(tmp_path / "sst2-1f3a9c")


@pytest.fixture
def new_run(tmp_path: Path) -> RunDir:
    return write_new(tmp_path / "sst2-0b5e11")
