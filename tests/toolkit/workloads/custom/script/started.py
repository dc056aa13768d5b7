"""A script that has just been started, as one of its processes sees the run."""

from __future__ import annotations

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
