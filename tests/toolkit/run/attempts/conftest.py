"""A run, and an experiment with the usual budgets."""

from __future__ import annotations

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return tiny(tmp_path_factory.mktemp("data"))
