"""The launcher of this machine: whatever ends its ranks, it starts them again where that helps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.story import Run, Runs, assert_as_if_nothing_had_happened
from tests.patience import PATIENCE_S
from tests.toolkit.tiny import tiny
from toolkit.files import read_json
from toolkit.reliability.fault_injection import VARIABLE
from toolkit.run.attempts.records import read_attempts


def launch(run: Run, procs: int, faults: str) -> int:
    """Train in so many processes, as `stk run` does; the exit code."""
    launcher = subprocess.run(
        [sys.executable, "-m", "toolkit.launch", str(run.folder.path), str(procs)],
        env={**os.environ, VARIABLE: faults},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    print(launcher.stdout, launcher.stderr)
    return launcher.returncode


@pytest.mark.slow
def test_killed_lost_and_diverged_it_comes_to_its_end_by_itself(
    runs: Runs, data: Path, undisturbed: Run
) -> None:
    run = runs.run(tiny(data, "train.reduction=exact", "checkpoint.every_steps=2"))
    faults = [
        "kill at=backward step=5 rank=1 attempt=1",
        "nan at=forward step=9 rank=0 attempt=2",
        "exit 1 at=optimizer step=13 rank=0 attempt=3",
    ]
    assert launch(run, 2, "; ".join(faults)) == 0
    whys = [(attempt.why, attempt.rank) for attempt in read_attempts(run.folder)]
    assert whys[:2] == [("killed", 1), ("diverged", 0)]
    assert whys[3] == ("finished", None)
    assert read_json(run.folder.result)["attempts"] == 4
    assert not run.folder.failure.exists()
    assert_as_if_nothing_had_happened(run, undisturbed)


@pytest.mark.slow
def test_error_of_the_task_is_left_to_its_user(runs: Runs, data: Path) -> None:
    """It would happen again."""
    run = runs.run(tiny(data, "train.reduction=exact", "checkpoint.every_steps=2"))
    assert launch(run, 2, "raise at=forward step=3 rank=1") == 4
    failure = read_json(run.folder.failure)
    assert (failure["class"], failure["rank"], failure["step"]) == ("exception", 1, 3)
    assert len(read_attempts(run.folder)) == 1
