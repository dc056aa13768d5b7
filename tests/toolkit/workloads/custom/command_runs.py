"""Runs of a script in the working folder, by the command `stk`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.run_dir import RunDir, find_runs

Stk = Callable[..., subprocess.CompletedProcess[str]]


def script(text: str, name: str = "train.py") -> None:
    Path(name).write_text(text)


def the_run() -> RunDir:
    (run,) = find_runs(Path(os.environ["STK_EXPERIMENT_DIR"]))
    return run


def last_attempt() -> AttemptRecord:
    return read_attempts(the_run())[-1]
