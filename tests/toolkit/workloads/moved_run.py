"""A finished run that was moved away from its data, and the command `stk`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.slurm.support.user import surroundings
from toolkit.config import Experiment
from toolkit.config.serialize import to_plain
from toolkit.run.run_dir import RunDir


def stk(*words: object, given: str = "", code: int = 0) -> str:
    """Return the command's output, or the errors of one that is expected to fail."""
    command = [sys.executable, "-m", "slurm", *map(str, words)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@contextmanager
def moved_run(folder: Path, make: Callable[..., Experiment], *overrides: str) -> Iterator[RunDir]:
    """A run that was trained once and moved; its data are deleted."""
    with surroundings(folder) as patch:
        patch.chdir(folder)
        patch.setenv("STK_EXPERIMENT_DIR", str(folder / "experiments"))
        (folder / "one.yaml").write_text(yaml.safe_dump(to_plain(make(folder / "files", *overrides))))
        stk("run", "one.yaml")
        (found,) = (folder / "experiments").iterdir()
        shutil.rmtree(folder / "files")
        shutil.move(found, folder / "moved")
        yield RunDir(folder / "moved")
