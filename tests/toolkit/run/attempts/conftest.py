"""A run, and an experiment with the usual budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment
from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return tiny(tmp_path_factory.mktemp("data"))
