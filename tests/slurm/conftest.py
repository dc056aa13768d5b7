"""What the tests of the submitter share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.stubs import Stubs


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """An empty PATH to put stub programs on: no program of Slurm is found until one is added."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return Stubs(folder)
