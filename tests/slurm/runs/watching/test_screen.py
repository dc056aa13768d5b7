"""Keys do what they say, and whatever ends the view, the terminal is as it was."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from rich.console import Console

from slurm.runs.watching.keyboard import Keyboard
from slurm.runs.watching.screen import Ending, Screen
from slurm.status.rows import RunStatus, status
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import CODE, House
from tests.slurm.stage import Stage
from toolkit.errors import SlurmUnavailable

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def stage(fake: FakeSlurm, house: House) -> Stage:
    return Stage(fake, house)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal: keys are pressed at one end and read at the other."""

    fingers: int
    keys: int

    def press(self, keys: str) -> None:
        os.write(self.fingers, keys.encode())

    @property
    def mode(self) -> list[object]:
        return termios.tcgetattr(self.keys)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    fingers, keys = pty.openpty()
    yield Terminal(fingers, keys)
    os.close(fingers)
    os.close(keys)


class Watched:
    """The view of the stage's run, which looks once an hour."""

    def __init__(self, stage: Stage, terminal: Terminal, *, until_finished: bool = False) -> None:
        self.stage = stage
        self.terminal = terminal
        self.looks = 0
        self._out = io.StringIO()
        self._screen = Screen(stage.run, self.look, 3600.0, until_finished)

    def look(self) -> RunStatus:
        self.looks += 1
        return status([self.stage.run])[0]

    def show(self, keys: str) -> Ending:
        """Press keys, and see how the view ends; the terminal is as it was then."""
        before, handler = self.terminal.mode, signal.getsignal(signal.SIGTERM)
        self.terminal.press(keys)
        console = Console(file=self._out, width=100, height=20, force_terminal=True, color_system=None)
        try:
            return self._screen.show(console, self.terminal.keys)
        finally:
            assert self.terminal.mode == before
            assert signal.getsignal(signal.SIGTERM) is handler
            assert self.shown.count(ENTER) == self.shown.count(LEAVE)
            assert self.shown.rindex(LEAVE) > self.shown.rindex(ENTER)

    @property
    def shown(self) -> str:
        return self._out.getvalue()


@pytest.fixture
def watched(stage: Stage, terminal: Terminal) -> Watched:
    return Watched(stage, terminal)


def test_q_ends_the_view(watched: Watched) -> None:
    assert watched.show("xq") is Ending.QUIT
    assert watched.stage.run.run_id in watched.shown
    assert watched.looks == 1


def test_l_is_for_the_log(watched: Watched) -> None:
    assert watched.show("l") is Ending.LOG


def test_c_asks_before_it_cancels(watched: Watched) -> None:
    watched.show("cq" + "cnq")
    assert f"cancel {watched.stage.run.run_id}? y / n" in watched.shown
    assert watched.stage.fake.calls("scancel") == []
    watched.show("cyq")
    assert watched.stage.fake.calls("scancel") == [["--", "101"]]
    assert "job 101 cancelled" in watched.shown


def test_r_sends_the_job_back_into_the_queue(watched: Watched) -> None:
    watched.show("rq")
    assert watched.stage.fake.calls("scancel") == [["--signal=USR2", "--", "101"]]
    assert "asked to save and to go back into the queue" in watched.shown


def test_what_slurm_refuses_is_told_in_the_view(watched: Watched) -> None:
    watched.stage.fake.refuses("scancel", "scancel: error: Access denied")
    watched.show("cyq")
    assert "Access denied" in watched.shown


def test_the_view_ends_with_the_run_where_that_is_wished(stage: Stage, terminal: Terminal) -> None:
    stage.fake.change("101", state="CANCELLED")
    assert Watched(stage, terminal, until_finished=True).show("") is Ending.QUIT


def test_another_size_is_drawn_at_once_and_ctrl_z_stops(
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
    monkeypatch.setattr("slurm.runs.watching.screen.os.kill", stopped)
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


def test_a_terminal_that_has_gone_is_told() -> None:
    fingers, keys = pty.openpty()
    with Keyboard(keys) as keyboard:
        os.close(fingers)
        with pytest.raises(EOFError):
            keyboard.wait(60)
    os.close(keys)


def test_in_a_terminal_the_command_draws_and_sigterm_is_how_others_end_it(
    stage: Stage, terminal: Terminal
) -> None:
    environ = {
        **stage.environ,
        **CODE,
        "STK_EXPERIMENT_DIR": str(stage.house.experiments),
    }
    before = terminal.mode
    process = subprocess.Popen(
        [sys.executable, "-m", "slurm", "watch", stage.run.run_id, "--interval", "600"],
        cwd=stage.house.root,
        env={**environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "20"},
        stdin=terminal.keys,
        stdout=terminal.keys,
        stderr=terminal.keys,
    )
    try:
        shown = read_until(terminal, b"follow the log")
        assert re.search(rb"\x1b\[\?1049h.*" + stage.run.run_id.encode(), shown, re.DOTALL)
        process.send_signal(signal.SIGTERM)
        assert b"\x1b[?1049l" in read_until(terminal, b"\x1b[?1049l")
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert terminal.mode == before
    assert len(stage.fake.calls("squeue")) == 1


def read_until(terminal: Terminal, what: bytes) -> bytes:
    """What the terminal shows up to something."""
    shown = b""
    while what not in shown:
        assert select.select([terminal.fingers], [], [], 60)[0], shown
        shown += os.read(terminal.fingers, 65536)
    return shown
