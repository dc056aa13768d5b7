"""The command `stk` in a folder of its own, and modules of a user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder. Modules of the user that a test imports are forgotten before and after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    _forget_modules(tmp_path.parent)
    yield tmp_path
    _forget_modules(tmp_path.parent)


def _forget_modules(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        # Not by getattr: some modules import others when they are asked.
        file = getattr(module, "__dict__", {}).get("__file__")
        if file and Path(file).is_relative_to(folder):
            del sys.modules[name]
