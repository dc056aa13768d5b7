"""Runs to disturb, and undisturbed ones, trained once for all tests that compare with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.story import Run, Runs
from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults_data")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def experiment(data: Path) -> Experiment:
    """Two epochs of eight steps: bucketed by length, with dropout, saved every other step."""
    return tiny(data, "train.reduction=exact", "checkpoint.every_steps=2")


@pytest.fixture
def run(runs: Runs, experiment: Experiment) -> Run:
    return runs.run(experiment)


@pytest.fixture(scope="session")
def undisturbed(runs: Runs, experiment: Experiment) -> Run:
    return runs.undisturbed(experiment)
