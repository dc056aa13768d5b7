"""`stk run` typed twice: one trains, and the other is told so and leaves the folder to it."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from filelock import FileLock

from slurm.commands.experiments import run as command
from slurm.status.submissions import record
from slurm.submission import submit
from tests.cluster.waiting import wait_until
from tests.slurm.support.user import User
from tests.support.patience import PATIENCE_S
from toolkit.errors import RunBusy
from toolkit.exit_codes import ExitCode
from toolkit.files import append_json_line, read_json_lines
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir, archive_run

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
    assert "local process" in process.stderr.readline()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert user.run().result.exists()


def test_a_run_that_another_command_has_just_started_keeps_its_code(
    user: User, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[RunDir] = []
    with ExitStack() as stack:

        def start(*_: object, **__: object) -> list[str]:
            stack.enter_context(FileLock(run.alive))
            return []

        monkeypatch.setattr(command, "change_warnings", start)
        monkeypatch.setattr(command, "take_new_code", lambda run, *_, **__: renewed.append(run))
        assert "cannot be started twice" in user.refused("run", user.config)
    assert renewed == []


@pytest.mark.parametrize("does", ["trains", "submitted", "finished", "failed", "stopped", "started anew"])
def test_refused_command_leaves_the_folder_to_the_command_that_uses_it(
    user: User, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    """The other command begins just when this one has made the folder."""
    with ExitStack() as stack:

        def refused(run: RunDir, *_: object) -> int:
            attempt = {"attempt": 1, "nonce": "other", "time_start": 1.0}
            if does == "trains":
                stack.enter_context(FileLock(run.alive))
            elif does == "submitted":
                record(run, cluster="slurm", job_id="12", name="tiny.0")
            elif does == "started anew":
                archive_run(run)
                create_run(user.experiment(), user.experiments)
            else:
                why = {"finished": "finished", "failed": "exception"}.get(does)
                append_json_line(run.attempts, {**attempt, "why": why})
            return RunBusy.exit_code

        monkeypatch.setattr(command, "_launch", refused)
        assert user.stk("run", user.config).code == 2
    assert user.run().config.exists()
    assert user.run().code.exists()


@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_refused_submission_leaves_the_folder_to_the_command_that_trains(
    user: User, monkeypatch: pytest.MonkeyPatch, fresh: list[str]
) -> None:
    """The other command begins just when the submission has made the folder, and needs no lock for it."""
    if fresh:
        create_run(user.experiment(), user.experiments)
    resolve = submit.resolve_if_possible
    with ExitStack() as stack:

        def trained(run: RunDir, **given: bool) -> None:
            if "must_know" in given:
                stack.enter_context(FileLock(run.alive))
            resolve(run, **given)

        monkeypatch.setattr(submit, "resolve_if_possible", trained)
        assert "cannot be started twice" in user.refused("submit", user.config, "--cluster", "local", *fresh)
        assert user.run().alive.exists()
    assert user.run().code.exists()


def test_fresh_start_with_an_error_puts_the_run_back_on_nfs_too(
    user: User, run: RunDir, nfs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.result.write_text("{}")
    monkeypatch.setattr(command, "_launch", lambda *_: ExitCode.WRONG_INPUT)
    assert user.stk("run", user.config, "--fresh").code == 2
    assert run.result.exists()
    assert list((user.experiments / "old").iterdir()) == []
