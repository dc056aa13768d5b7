"""One run on the whole terminal, until a key ends it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from enum import Enum, auto

from rich.console import Console
from rich.live import Live

from slurm.runs import cancel_requeue
from slurm.runs.watching.keyboard import Keyboard
from slurm.runs.watching.reading import RunReader
from slurm.runs.watching.snapshot import Snapshot
from slurm.runs.watching.view import view
from slurm.status.rows import RunStatus
from toolkit.errors import StkError
from toolkit.run.run_dir import RunDir

#: Gives the newest status of the run.
Look = Callable[[], RunStatus]


class Ending(Enum):
    """Why a view has ended."""

    QUIT = auto()
    STOPPED = auto()
    LOG = auto()


class Screen:
    """The view of one run, and what its keys do.

    look            where the run stands
    until_finished  whether the view ends when the run is not live any more
    """

    def __init__(self, run: RunDir, look: Look, interval_s: float, until_finished: bool) -> None:
        self._run = run
        self._look = look
        self._interval_s = interval_s
        self._until_finished = until_finished
        self._reader = RunReader(run)
        self._message = ""
        self._asks_to_cancel = False

    def show(self, console: Console, descriptor: int) -> Ending:
        """Show the run until a key, or its end, ends the view. descriptor: of the terminal's keys."""
        while (ending := self._show(console, descriptor)) is Ending.STOPPED:
            # As Ctrl-Z would have done, with the terminal as it was; `fg` goes on here.
            os.kill(os.getpid(), signal.SIGSTOP)
        return ending

    def _show(self, console: Console, descriptor: int) -> Ending:
        # The keyboard outside: should drawing fail, the terminal listens again before the error is told.
        with Keyboard(descriptor) as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                snapshot = self._reader.read(self._look())
                if self._until_finished and not snapshot.row.is_live:
                    return Ending.QUIT
                ending = self._until_next_look(keyboard, live, snapshot)
                if ending is not None:
                    return ending

    def _until_next_look(self, keyboard: Keyboard, live: Live, snapshot: Snapshot) -> Ending | None:
        """Answer keys until it is time to look again."""
        next_look = time.monotonic() + self._interval_s
        while True:
            width, height = live.console.size
            live.update(view(snapshot, width, height, self._message), refresh=True)
            key = keyboard.wait(next_look - time.monotonic())
            if not key:
                return None
            if (ending := self._press(key, snapshot.row)) is not None:
                return ending

    def _press(self, key: str, row: RunStatus) -> Ending | None:
        if self._asks_to_cancel:
            self._asks_to_cancel = False
            self._message = self._do(cancel_requeue.cancel, row) if key == "y" else ""
            return None
        if key == "c":
            self._asks_to_cancel = True
            self._message = f"cancel {row.run_id}? y / n"
        elif key == "r":
            self._message = self._do(cancel_requeue.requeue, row)
        return {"q": Ending.QUIT, "l": Ending.LOG, "stopped": Ending.STOPPED}.get(key)

    def _do(self, act: Callable[[RunDir, RunStatus], str], row: RunStatus) -> str:
        try:
            return act(self._run, row)
        except (StkError, OSError) as error:
            return str(error)


def follow_log(run: RunDir) -> None:
    """Become `stk logs --follow`. Does not return."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "slurm", "logs", "--follow", str(run.path)])
