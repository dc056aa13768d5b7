"""When a command that ignores its signals is killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command import stopping
from toolkit.workloads.custom.command.program import Program
from toolkit.workloads.custom.command.stopping import Caught, Leaving

IGNORES = """
import pathlib, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("started").touch()
while True:
    signal.pause()
"""


class Terminated:
    """The stop of a process that has received SIGTERM."""

    def reason_to_stop(self, lead_s: float, *, is_measured: bool = True) -> str:
        return "SIGTERM"


@pytest.mark.parametrize("job", ["", "7"])
def test_command_that_ignores_sigterm_is_killed_unless_the_scheduler_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    monkeypatch.setattr(stopping, "KILL_AFTER_S", -1.0)
    caught = Caught()
    caught.numbers.append(signal.SIGTERM)
    world = World(rank=0, size=1, local_rank=0, local_size=1, nonce="7.0.0", job=job)
    leaving = Leaving(RunDir(tmp_path), world, Terminated(), caught)
    words = [sys.executable, "-c", IGNORES]
    program = Program(words, tmp_path, os.environ, tmp_path / "log", shown=False)
    try:
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        for _ in ("SIGTERM", "SIGKILL"):
            leaving.pass_on(program)
        if job:
            assert program.wait(0.1) is None
        else:
            assert program.wait(60) == -signal.SIGKILL
    finally:
        program.close()
