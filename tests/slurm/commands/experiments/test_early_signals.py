"""A stop signal during the imports of `stk run` ends it in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.support.user import CODE, User
from tests.support.patience import PATIENCE_S, until
from tests.support.ports import free_port
from tests.tiers import first_quick
from toolkit.exit_codes import ExitCode
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

#: A process that is about to import this module says so, and waits.
_WAITING = """\
import sys, time
from importlib.machinery import PathFinder
from pathlib import Path

class Waiting(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname == {module!r}:
            Path({here!r}).touch()
            while not Path({go!r}).exists():
                time.sleep(0.01)
        return None

sys.meta_path.insert(0, Waiting)
"""


def signalled(
    folder: Path, module: str, number: signal.Signals, *words: object, **environ: str
) -> tuple[int, str]:
    """Exit status and output of a Python process that gets a signal when it is about to import a module."""
    here, go, path = folder / "here", folder / "go", folder / "path"
    path.mkdir()
    (path / "sitecustomize.py").write_text(_WAITING.format(module=module, here=str(here), go=str(go)))
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        env={**os.environ, **environ, "PYTHONPATH": f"{path}{os.pathsep}{CODE['PYTHONPATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    until(here.exists, process)
    process.send_signal(number)
    go.touch()
    output, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output


@pytest.mark.parametrize("number", first_quick([signal.SIGTERM, signal.SIGUSR2]))
def test_early_signal_interrupts_the_command_without_a_run(user: User, number: signal.Signals) -> None:
    code, output = signalled(user.root, "slurm.cli", number, "slurm", "run", user.config)
    assert code == ExitCode.INTERRUPTED, output
    assert "Traceback" not in output
    assert user.runs == []


@pytest.mark.parametrize("number", first_quick([signal.SIGTERM, signal.SIGUSR2]))
def test_early_signal_ends_a_background_launcher_before_any_rank(user: User, number: signal.Signals) -> None:
    run = create_run(user.experiment(), user.experiments)
    code, output = signalled(user.root, "toolkit.launch.launcher", number, "toolkit.launch", run.path, 1)
    assert code == ExitCode.INTERRUPTED, output
    assert read_attempts(run) == []


@pytest.mark.slow
def test_early_signal_stops_a_rank_of_another_launcher_in_order(user: User) -> None:
    """It must take part in the stop of all ranks: one that just ended would be a crash for the others."""
    rank = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    rank |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    code, output = signalled(user.root, "slurm.cli", signal.SIGUSR2, "slurm", "run", user.config, **rank)
    assert code == ExitCode.INTERRUPTED, output
    (attempt,) = read_attempts(RunDir(user.experiments / user.runs[0]))
    assert attempt.why == "SIGUSR2"
