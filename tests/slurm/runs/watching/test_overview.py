"""Keys select and open a run in the table of all runs. However the table ends, the terminal is as before."""

from __future__ import annotations

import io
import select
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace

import pytest

from slurm.runs.watching import overview, view
from slurm.runs.watching.live_view import Ending
from slurm.runs.watching.overview import Overview
from slurm.runs.watching.polling import RunPoller
from slurm.status.rows import RunStatus, status
from tests.slurm.runs.watching.terminals import ENTER, LEAVE, Terminal, watching
from tests.slurm.support.pretend_job import PretendJob
from tests.support.patience import PATIENCE_S

UP, DOWN = "\x1b[A", "\x1b[B"
#: A word of each view that the other view does not show.
IN_OVERVIEW, IN_RUN = overview.KEYS[1][1], view.KEYS[0][1]


@pytest.fixture
def rows(job: PretendJob) -> list[RunStatus]:
    """Three runs, a, b and c."""
    (row,) = status([job.run])
    return [replace(row, run_id=name, run_dir=f"/runs/{name}") for name in "abc"]


class Watched:
    """The table of runs. Each reading finds the next rows and then presses the next keys."""

    def __init__(
        self, terminal: Terminal, *looks: tuple[Sequence[RunStatus], str], until_finished: bool = False
    ) -> None:
        self.terminal = terminal
        self.out = io.StringIO()
        self._looks = iter(looks)
        # No time between two readings: without a key left, the next one follows at once.
        self.overview = Overview(self.look, 0.0, until_finished)

    def look(self) -> Sequence[RunStatus]:
        rows, keys = next(self._looks)
        self.terminal.press(keys)
        if keys:
            # They come a moment later.
            assert select.select([self.terminal.keys], [], [], PATIENCE_S)[0]
        return rows

    def show(self) -> Ending:
        return self.terminal.show(self.overview, "", self.out)

    @property
    def opened(self) -> str:
        """The run that the keys lead to."""
        assert self.show() is Ending.OPENED
        return self.overview.selected.run_id


@pytest.mark.parametrize(
    "keys,run_id",
    [
        ("", "a"),
        ("j", "b"),
        (DOWN, "b"),
        ("jjk", "b"),
        (DOWN + DOWN + UP, "b"),
        ("k" + UP, "a"),
        ("jjjjk", "b"),
        ("x" + DOWN * 9, "c"),
    ],
)
def test_keys_select_a_run_and_enter_opens_it(
    terminal: Terminal, rows: list[RunStatus], keys: str, run_id: str
) -> None:
    assert Watched(terminal, (rows, keys + "\r")).opened == run_id


def test_selected_run_stays_selected_when_rows_are_reordered(
    terminal: Terminal, rows: list[RunStatus]
) -> None:
    a, b, c = rows
    new = replace(a, run_id="new", run_dir="/runs/new")
    assert Watched(terminal, (rows, "j"), ([new, c, b, a], "\r")).opened == "b"


def test_neighbour_of_a_vanished_run_is_selected(terminal: Terminal, rows: list[RunStatus]) -> None:
    a, b, c = rows
    assert Watched(terminal, (rows, "j"), ([a, c], "\r")).opened == "c"
    assert Watched(terminal, (rows, "jj"), ([a, b], "\r")).opened == "b"
    assert Watched(terminal, (rows, "jj"), ([], ""), (rows, "\r")).opened == "a"


def test_the_selection_is_kept_while_a_run_is_open(terminal: Terminal, rows: list[RunStatus]) -> None:
    watched = Watched(terminal, (rows, "j\r"), (rows, "\r"))
    assert [watched.opened, watched.opened] == ["b", "b"]


def test_enter_opens_nothing_without_runs(terminal: Terminal) -> None:
    assert Watched(terminal, ([], "j\rq")).show() is Ending.QUIT


def test_the_table_ends_when_no_run_is_live(terminal: Terminal, rows: list[RunStatus]) -> None:
    ended = [replace(row, is_live=False) for row in rows]
    looks = ((rows, ""), (ended, ""))
    assert Watched(terminal, *looks, until_finished=True).show() is Ending.QUIT


def test_ctrl_z_suspends_the_table(terminal: Terminal) -> None:
    """What comes of it is the same in each view: see test_screen.py."""
    assert Watched(terminal).overview.press("stopped") is Ending.STOPPED


def test_requeued_runs_are_released_while_another_run_is_open(job: PretendJob) -> None:
    other = PretendJob(job.fake, job.user, "seed=2", job_id="102")
    job.fake.change("102", state="PENDING", reason="BeginTime", restarts="1")
    row = RunPoller().look_at(job.run, [other.run, job.run])
    assert row.run_id == job.run.run_id
    assert job.fake.calls("scontrol") == [["update", "jobid=102", "starttime=now+5"]]


# -- the command in a terminal ---------------------------------------------------------------------


def test_enter_opens_the_selected_run_and_esc_and_q_go_back(job: PretendJob, terminal: Terminal) -> None:
    other = PretendJob(job.fake, job.user, "seed=2", job_id="102")
    first, second = sorted([job.run.run_id, other.run.run_id])
    with watching(terminal, job):
        shown = terminal.read_until(IN_OVERVIEW)
        assert first in shown
        assert second in shown
        for keys, run_id, hidden, back in ((DOWN + "\r", second, first, "\x1b"), ("k\r", first, second, "q")):
            terminal.press(keys)
            shown = terminal.read_until(IN_RUN).rpartition(ENTER)[2]
            assert run_id in shown
            assert hidden not in shown
            terminal.press(back)
            terminal.read_until(IN_OVERVIEW)
        terminal.press("q")
        terminal.read_until(LEAVE)


@pytest.mark.parametrize("keys,word", [("", IN_OVERVIEW), ("\r", IN_RUN)], ids=["overview", "run"])
def test_ctrl_c_ends_the_command_in_either_view(
    job: PretendJob, terminal: Terminal, keys: str, word: str
) -> None:
    with watching(terminal, job) as process:
        terminal.read_until(IN_OVERVIEW)
        terminal.press(keys)
        if keys:
            terminal.read_until(word)
        process.send_signal(signal.SIGINT)
        terminal.read_until(LEAVE)


@pytest.mark.parametrize("has_id", [False, True], ids=["all runs", "one run"])
def test_final_states_stay_on_the_terminal(job: PretendJob, terminal: Terminal, has_id: bool) -> None:
    job.fake.change("101", state="CANCELLED")
    with watching(terminal, job, "--until-finished", *[job.run.run_id] * has_id):
        assert job.run.run_id in terminal.read_until("cancelled").rpartition(LEAVE)[2]


def test_without_a_keyboard_the_table_is_drawn_in_place(job: PretendJob, terminal: Terminal) -> None:
    job.fake.change("101", state="CANCELLED")
    with watching(terminal, job, "--until-finished", stdin=subprocess.DEVNULL):
        shown = terminal.read_until("cancelled")
        assert job.run.run_id in shown
        assert ENTER not in shown
