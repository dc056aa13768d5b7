"""A run as its script sees it. The script is a new process, or the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.run.run_dir import RunDir
from toolkit.workloads.custom.script.current_run import CurrentRun
from toolkit.workloads.custom.script.place import Place


def start(run: RunDir, *, rank: int = 0, size: int = 1) -> CurrentRun:
    """The run in a new process of the script."""
    return CurrentRun(Place(run=run, rank=rank, size=size))


def save(script: CurrentRun, step: int, text: str = "state", **options: bool | int) -> None:
    with script.checkpoint(step, **options) as folder:
        (folder / "parts").mkdir()
        (folder / "parts" / "0.txt").write_text(f"{text} {step}")


class AskedRun(CurrentRun):
    """The test asks it to stop; signals stay pytest's."""

    def __init__(self, folder: Path) -> None:
        self.dir = RunDir(folder)
        self.is_asked = self.catches_signals = False
        super().__init__(Place(run=self.dir, rank=0, size=1))

    def catch_signals(self) -> None:
        self.catches_signals = True

    def should_stop(self, *, every: int | None = None) -> bool:
        return self.is_asked

    def _should_stop_evaluating(self) -> bool:
        return self.is_asked


def own_run_for(trainer: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AskedRun:
    """Make the run that RunCallback finds in this process.

    trainer  lightning or transformers, whose module is imported
    """
    run = AskedRun(folder)
    monkeypatch.setattr(f"toolkit.workloads.custom.script.trainers.for_{trainer}.current_run", lambda: run)
    monkeypatch.setattr("toolkit.workloads.custom.script.resuming._begun", [])
    return run
