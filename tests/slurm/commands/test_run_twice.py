"""`stk run` typed twice: one trains, and the other is told so and leaves the folder to it."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.commands.experiments import run as command
from tests.cluster.waiting import wait_until
from tests.patience import PATIENCE_S
from tests.slurm.support.user import User
from toolkit.config.schema import Experiment
from toolkit.errors import RunBusy
from toolkit.files import read_json_lines
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

#: No run comes so far.
ENDLESS = "train.epochs=5002"


@pytest.fixture(autouse=True)
def without_slurm(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def both(user: User) -> Iterator[list[subprocess.Popen[str]]]:
    """The command twice, at once."""
    started = [user.start("run", user.config, ENDLESS) for _ in range(2)]
    yield started
    for each in started:
        each.kill()


@pytest.mark.slow
def test_one_of_two_simultaneous_commands_trains_and_the_other_is_refused(
    user: User, both: list[subprocess.Popen[str]]
) -> None:
    run = user.run(ENDLESS)
    wait_until(lambda: any(each.poll() is not None for each in both), lambda: "both train")
    refused, trains = sorted(both, key=lambda each: each.poll() is None)
    # By the launcher where it came second, by its rank where both have started theirs.
    assert re.search("cannot be started twice|by another process", refused.communicate()[1])
    assert refused.returncode == 2
    wait_until(lambda: command.has_worked(run), lambda: str(trains.poll()))
    trains.send_signal(signal.SIGTERM)
    trains.communicate(timeout=PATIENCE_S)
    assert trains.returncode == 130
    (start,) = (line for line in read_json_lines(run.attempts) if "time_start" in line)
    assert run.checkpoint_steps()[-1] == start["last_step"]


def test_run_trains_to_its_end_after_its_output_is_closed(user: User) -> None:
    """As in `stk run … 2>&1 | head -1`."""
    process = user.start("run", user.config)
    assert "local processes" in process.stderr.readline()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert user.run().result.exists()


def test_a_run_that_another_command_has_just_started_keeps_its_code(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create_run(user.experiment(), user.experiments)
    renewed: list[RunDir] = []
    with ExitStack() as stack:

        def start(*_: object, **__: object) -> list[str]:
            stack.enter_context(FileLock(run.alive))
            return []

        monkeypatch.setattr(command, "change_warnings", start)
        monkeypatch.setattr(command, "take_new_code", lambda run, *_, **__: renewed.append(run))
        told = user.stk("run", user.config)
    assert (told.code, renewed) == (2, [])
    assert "cannot be started twice" in told.err


@pytest.fixture
def trained_by_another(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another process begins to train a run just when a command makes its folder."""
    with ExitStack() as stack:

        def make(experiment: Experiment, parent: Path) -> RunDir:
            run = create_run(experiment, parent)
            stack.enter_context(FileLock(run.alive))
            return run

        monkeypatch.setattr(command, "create_run", make)
        # What comes of a rank that finds the lock taken.
        monkeypatch.setattr(command, "_launch", lambda *arguments: RunBusy.exit_code)
        yield


@pytest.mark.usefixtures("trained_by_another")
def test_refused_command_leaves_the_folder_to_the_run_that_trains(user: User) -> None:
    assert user.stk("run", user.config).code == 2
    assert user.run().config.exists()
    assert user.run().code.exists()
