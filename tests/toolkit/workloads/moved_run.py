"""A finished run that was moved away from its data, and the command `stk`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.slurm.support.user import surroundings
from toolkit.config import Experiment
from toolkit.run.run_dir import RunDir


def ended(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command until it ends. Any exit code is allowed."""
    command = [sys.executable, "-P", "-m", "slurm", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def stk(*words: object, given: str = "", code: int = 0) -> str:
    """Return the command's output, or the errors of one that is expected to fail."""
    done = ended(*words, input=given)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@contextmanager
def moved_run(folder: Path, make: Callable[..., Experiment], *overrides: str) -> Iterator[RunDir]:
    """A run that was trained once and moved; its data are deleted. The folder is the working folder."""
    from tests.toolkit.support.tiny_training import Attempt, Lab  # imports torch

    # Before the surroundings, which all later ranks would have.
    run = Lab(folder).train(make(folder / "files", *overrides), Attempt())
    shutil.rmtree(folder / "files")
    shutil.move(run.path, folder / "moved")
    with surroundings(folder) as patch:
        patch.chdir(folder)
        patch.setenv("STK_EXPERIMENT_DIR", str(folder / "experiments"))
        yield RunDir(folder / "moved")
