"""The spelling study's scripts, ready to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.spelling_study import Study


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(tmp_path, monkeypatch)
