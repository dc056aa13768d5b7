"""The command `stk` in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.command_runs import Stk
from tests.toolkit.workloads.moved_run import ended


@pytest.fixture
def stk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stk:
    """Runs the command `stk` in a folder of its own."""
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(tmp_path / "runs"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return ended
