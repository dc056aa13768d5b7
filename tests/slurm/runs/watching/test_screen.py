"""Keys do what they say. However the view ends, the terminal is as it was before."""

from __future__ import annotations

import io
import os
import signal

import pytest

from slurm.runs.watching.live_view import Ending
from slurm.runs.watching.on_terminal import Screen
from slurm.status.rows import RunStatus, status
from tests.slurm.runs.watching.terminals import ENTER, LEAVE, Terminal, watching
from tests.slurm.support.pretend_job import PretendJob
from toolkit.errors import SlurmUnavailable


class Watched:
    """The view of the job's run, which looks once an hour."""

    def __init__(
        self, job: PretendJob, terminal: Terminal, *, until_finished: bool = False, is_opened: bool = False
    ) -> None:
        self.job = job
        self.terminal = terminal
        self.looks = 0
        self._out = io.StringIO()
        self._screen = Screen(job.run, self.look, 3600.0, until_finished, is_opened)

    def look(self) -> RunStatus:
        self.looks += 1
        return status([self.job.run])[0]

    def show(self, keys: str) -> Ending:
        """Press keys, and see how the view ends; the terminal is as it was then."""
        return self.terminal.show(self._screen, keys, self._out)

    @property
    def shown(self) -> str:
        return self._out.getvalue()


@pytest.fixture
def watched(job: PretendJob, terminal: Terminal) -> Watched:
    return Watched(job, terminal)


def test_q_ends_the_view(watched: Watched) -> None:
    assert watched.show("xq") is Ending.QUIT
    assert watched.job.run.run_id in watched.shown
    assert watched.looks == 1


def test_esc_ends_only_a_view_that_was_opened_from_the_table(job: PretendJob, terminal: Terminal) -> None:
    opened, alone = Watched(job, terminal, is_opened=True), Watched(job, terminal)
    assert opened.show("\x1b") is Ending.QUIT
    assert alone.show("\x1bl") is Ending.LOG
    assert opened.shown.splitlines()[-1] != alone.shown.splitlines()[-1]


def test_c_asks_before_it_cancels(watched: Watched) -> None:
    watched.show("cq" + "cnq")
    assert f"cancel {watched.job.run.run_id}? y / n" in watched.shown
    assert watched.job.fake.calls("scancel") == []
    watched.show("cyq")
    assert watched.job.fake.calls("scancel") == [["--", "101"]]
    assert "job 101 cancelled" in watched.shown


def test_r_sends_the_job_back_into_the_queue(watched: Watched) -> None:
    watched.job.fake.has_steps("101.0")
    watched.show("rq")
    assert watched.job.fake.calls("scancel") == [["--signal=USR2", "--", "101"]]
    assert "asked to save and to requeue" in watched.shown


def test_refusal_of_slurm_is_shown_in_the_view(watched: Watched) -> None:
    watched.job.fake.refuses("scancel", "scancel: error: Access denied")
    watched.show("cyq")
    assert "Access denied" in watched.shown


def test_until_finished_ends_the_view_with_the_run(job: PretendJob, terminal: Terminal) -> None:
    job.fake.change("101", state="CANCELLED")
    assert Watched(job, terminal, until_finished=True).show("") is Ending.QUIT


def test_ctrl_z_suspends_the_view_and_restores_the_terminal(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped with the terminal as it was, and drawn anew when it goes on."""
    sent: list[tuple[int, int]] = []
    kill = os.kill

    def stopped(process: int, number: int) -> None:
        sent.append((number, watched.shown.count(LEAVE)))
        watched.terminal.press("q")

    def look() -> RunStatus:
        for number in (signal.SIGWINCH, signal.SIGTSTP) if not sent else ():
            kill(os.getpid(), number)
        return Watched.look(watched)

    monkeypatch.setattr(watched._screen, "_look", look)
    monkeypatch.setattr(os, "kill", stopped)
    assert watched.show("") is Ending.QUIT
    assert sent == [(signal.SIGSTOP, 1)]
    assert watched.shown.count(ENTER) == 2


@pytest.mark.parametrize("error", [SlurmUnavailable("gone"), KeyboardInterrupt(), ZeroDivisionError()])
def test_an_error_leaves_the_terminal_as_it_was(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def look() -> RunStatus:
        raise error

    monkeypatch.setattr(watched._screen, "_look", look)
    with pytest.raises(type(error)):
        watched.show("")


def test_command_draws_in_a_terminal_and_ends_on_sigterm(job: PretendJob, terminal: Terminal) -> None:
    with watching(terminal, job, job.run.run_id) as process:
        shown = terminal.read_until("follow the log")
        assert job.run.run_id in shown.partition(ENTER)[2]
        process.send_signal(signal.SIGTERM)
        terminal.read_until(LEAVE)
    assert len(job.fake.calls("squeue")) == 1
