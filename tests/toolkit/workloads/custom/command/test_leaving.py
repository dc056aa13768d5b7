"""When a command that ignores its signals is killed."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.mounts import fill, small_disk
from toolkit.run.disk_reserve import keep_reserve
from toolkit.run.failure.classes import PEER_LOST
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command import stopping
from toolkit.workloads.custom.command.program import Program
from toolkit.workloads.custom.command.stopping import Caught, Leaving
from toolkit.workloads.custom.script.current_run import CurrentRun
from toolkit.workloads.custom.script.place import Place

IGNORES = """
import pathlib, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("started").touch()
while True:
    signal.pause()
"""


class Stopped:
    """A Stop with this reason, or with none."""

    def __init__(self, why: str | None) -> None:
        self._why = why

    def reason_to_stop(self, lead_s: float, *, is_measured: bool = True) -> str | None:
        return self._why


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setattr(stopping, "KILL_AFTER_S", -1.0)
    monkeypatch.setattr(CurrentRun, "catch_signals", lambda self: None)
    return RunDir(tmp_path)


def status(run: RunDir, why: str | None, *, job: str = "", attempt: int = 1, size: int = 1) -> int | None:
    """Exit status of a command that ignores SIGTERM, when its time to leave is over; None if it goes on."""
    caught = Caught()
    if why == "SIGTERM":
        caught.numbers.append(signal.SIGTERM)
    world = World(rank=0, size=size, local_rank=0, local_size=size, nonce="7.0.0", job=job)
    leaving = Leaving(run, world, Stopped(why), caught)
    leaving.attempt = attempt
    run.stop_request(world.nonce).unlink(missing_ok=True)
    (run.path / "started").unlink(missing_ok=True)
    words = [sys.executable, "-c", IGNORES]
    program = Program(words, run.path, os.environ, run.path / "log", shown=False)
    try:
        while not (run.path / "started").exists():
            time.sleep(0.01)
        for _ in ("SIGTERM", "SIGKILL"):
            leaving.pass_on(program)
        return program.wait(60 if leaving.is_over() and not job else 0.1)
    finally:
        program.close()


@pytest.mark.parametrize("job, expected", [("", -signal.SIGKILL), ("7", None)])
def test_command_that_ignores_sigterm_is_killed_unless_the_scheduler_does_it(
    job: str, expected: int | None, run: RunDir
) -> None:
    assert status(run, "SIGTERM", job=job) == expected


def test_command_is_killed_later_while_a_script_of_its_attempt_saves(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(run=run, rank=0, size=1, attempt=2)
    with CurrentRun(place).checkpoint(5) as folder:
        assert status(run, "SIGUSR2", attempt=2) is None
        assert status(run, "SIGUSR2", attempt=3) == -signal.SIGKILL
        assert status(run, "time_limit", attempt=2) == -signal.SIGKILL
        monkeypatch.setattr(stopping, "SAVE_S", -1.0)
        assert status(run, "SIGUSR2", attempt=2) == -signal.SIGKILL
        (folder / "state").touch()


@pytest.mark.parametrize("name, expected", [("exception", -signal.SIGKILL), (PEER_LOST, None)])
def test_command_is_killed_after_the_failure_of_another_rank_even_if_its_script_saves(
    name: str, expected: int | None, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank that has lost another one is not the first that failed."""
    monkeypatch.setattr(stopping, "_KILL_AFTER_FAILURE_S", -1.0)
    place = {"rank": 1, "host": "n1", "phase": "program", "step": None}
    write_first(run, failure_record("7.0.0", name, "no labels", **place))
    with CurrentRun(Place(run=run, rank=0, size=1, attempt=2)).checkpoint(5) as folder:
        assert status(run, None, attempt=2, size=2) == expected
        (folder / "state").touch()


def test_command_goes_on_if_the_failures_of_others_cannot_be_read(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(*_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(stopping, "first_failure", stale)
    world = World(rank=0, size=2, local_rank=0, local_size=2, nonce="7.0.0")
    assert not Leaving(run, world, Stopped(None), Caught()).look()


@pytest.mark.parametrize("why, asked", [(None, False), ("SIGTERM", True)])
def test_request_works_if_its_folder_cannot_be_used(run: RunDir, why: str | None, asked: bool) -> None:
    world = World(rank=0, size=1, local_rank=0, local_size=1, nonce="7.0.0")
    run.stop_request(world.nonce).parent.touch()
    assert Leaving(run, world, Stopped(why), Caught()).look() is asked


def test_request_reaches_the_other_ranks_on_a_full_disk_by_the_reserve(tmp_path: Path) -> None:
    first, other = (World(rank=rank, size=2, local_rank=rank, local_size=2, nonce="7.0.0") for rank in (0, 1))
    with small_disk(tmp_path):
        run = RunDir(tmp_path)
        keep_reserve(run)
        fill(tmp_path)
        assert Leaving(run, first, Stopped("SIGTERM"), Caught()).look()
        assert Leaving(run, other, Stopped(None), Caught()).look()
        # As a save of the command that finds no room.
        fill(tmp_path)
        ended = failure_record("7.0.0", "io", "no room", rank=0, host="n1", phase="save", step=None)
        assert write_first(run, ended)
