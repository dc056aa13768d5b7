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

from slurm import steering
from slurm.status.rows import RunStatus
from slurm.watching.keyboard import Keyboard
from slurm.watching.reading import RunReader
from slurm.watching.scene import Scene
from slurm.watching.view import view
from toolkit.errors import StkError
from toolkit.rundir import RunDir

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
                scene = self._reader.read(self._look())
                if self._until_finished and not scene.row.is_live:
                    return Ending.QUIT
                ending = self._until_next_look(keyboard, live, scene)
                if ending is not None:
                    return ending

    def _until_next_look(self, keyboard: Keyboard, live: Live, scene: Scene) -> Ending | None:
        """Answer keys until it is time to look again."""
        next_look = time.monotonic() + self._interval_s
        while True:
            width, height = live.console.size
            live.update(view(scene, width, height, self._message), refresh=True)
            key = keyboard.wait(next_look - time.monotonic())
            if not key:
                return None
            if (ending := self._press(key, scene.row)) is not None:
                return ending

    def _press(self, key: str, row: RunStatus) -> Ending | None:
        if self._asks_to_cancel:
            self._asks_to_cancel = False
            self._message = self._do(steering.cancel, row) if key == "y" else ""
            return None
        if key == "c":
            self._asks_to_cancel = True
            self._message = f"cancel {row.run_id}? y / n"
        elif key == "r":
            self._message = self._do(steering.requeue, row)
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
