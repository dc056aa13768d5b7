"""A pseudo-terminal: tests press keys at one end, and a view reads them at the other."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console

from slurm.runs.watching.keyboard import Keyboard
from slurm.runs.watching.live_view import Ending, LiveView
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import CODE
from tests.support.patience import PATIENCE_S

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


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

    def read_until(self, what: str) -> str:
        """Read what the terminal shows until a text appears."""
        shown = b""
        while what.encode() not in shown:
            assert select.select([self.fingers], [], [], PATIENCE_S)[0], shown
            shown += os.read(self.fingers, 65536)
        return shown.decode(errors="replace")

    def show(self, view: LiveView, keys: str, out: io.StringIO) -> Ending:
        """Press keys; return how the view ends. Checks that the terminal is as before."""
        before, handler = self.mode, signal.getsignal(signal.SIGTERM)
        self.press(keys)
        console = Console(file=out, width=100, height=20, force_terminal=True, color_system=None)
        try:
            return view.show(console, Keyboard(self.keys))
        finally:
            assert self.mode == before
            assert signal.getsignal(signal.SIGTERM) is handler
            shown = out.getvalue()
            assert shown.count(ENTER) == shown.count(LEAVE)
            assert shown.rindex(LEAVE) > shown.rindex(ENTER)


@contextmanager
def watching(
    terminal: Terminal, job: PretendJob, *arguments: str, stdin: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """`stk watch` in a process of its own, which reads the runs once. Afterwards the terminal is as before.

    stdin  where its keys come from, if not from the terminal
    """
    environ = {**job.environ, **CODE, "STK_EXPERIMENT_DIR": str(job.user.experiments)}
    before = terminal.mode
    # Processes in the background ignore the signal, and so do their children: the tests may be one.
    kept = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "slurm", "watch", "--interval", "600", *arguments],
            cwd=job.user.root,
            env={**environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "20"},
            stdin=terminal.keys if stdin is None else stdin,
            stdout=terminal.keys,
            stderr=terminal.keys,
        )
    finally:
        signal.signal(signal.SIGINT, kept)
    try:
        yield process
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert terminal.mode == before
