"""`stk watch` on a terminal with a keyboard: one run, or a table from which each run can be opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, Group

from slurm.runs import cancel_requeue
from slurm.runs.watching.keyboard import Keyboard
from slurm.runs.watching.live_view import Ending, LiveView
from slurm.runs.watching.overview import Overview
from slurm.runs.watching.polling import RunPoller
from slurm.runs.watching.reading import RunReader, Snapshot
from slurm.runs.watching.view import KEYS, KEYS_OF_OPENED, view
from slurm.status.rows import RunStatus
from slurm.status.table import show
from toolkit.errors import StkError
from toolkit.run.run_dir import RunDir

#: A function that returns the current status of the run.
Look = Callable[[], RunStatus]


class Screen(LiveView):
    """The view of one run, and the actions of its keys.

    look        reads the state of the run
    is_opened   whether it was opened from the overview; Esc then returns to it
    """

    _snapshot: Snapshot

    def __init__(
        self, run: RunDir, look: Look, interval_s: float, until_finished: bool, is_opened: bool = False
    ) -> None:
        super().__init__(interval_s, until_finished)
        self._run = run
        self._look = look
        self._is_opened = is_opened
        self._reader = RunReader(run)
        self._message = ""
        self._asks_to_cancel = False

    def refresh(self) -> bool:
        self._snapshot = self._reader.read(self._look())
        return self._snapshot.row.may_live

    def draw(self, width: int, height: int) -> Group:
        keys = KEYS_OF_OPENED if self._is_opened else KEYS
        return view(self._snapshot, width, height, self._message, keys)

    def press(self, key: str) -> Ending | None:
        row = self._snapshot.row
        if self._asks_to_cancel:
            self._asks_to_cancel = False
            self._message = self._do(cancel_requeue.cancel, row) if key == "y" else ""
            return None
        if key == "c":
            self._asks_to_cancel = True
            self._message = f"cancel {row.run_id}? y / n"
        elif key == "r":
            self._message = self._do(cancel_requeue.requeue, row)
        elif key == "escape" and self._is_opened:
            return Ending.QUIT
        return {"q": Ending.QUIT, "l": Ending.LOG, "stopped": Ending.STOPPED}.get(key)

    def _do(self, act: Callable[[RunDir, RunStatus], str], row: RunStatus) -> str:
        try:
            return act(self._run, row)
        except (StkError, OSError) as error:
            return str(error)


#: A function that returns the current runs.
Find = Callable[[], list[RunDir]]


def watch_one(target: RunDir, interval_s: float, until_finished: bool) -> None:
    """Show one run until a key or the end of the run ends the view."""
    poller = RunPoller()
    screen = Screen(target, lambda: poller.look([target])[0], interval_s, until_finished)
    if screen.show(Console(), Keyboard(sys.stdin.fileno())) is Ending.LOG:
        _follow_log(target)
    if until_finished:
        show(poller.look([target]))


def watch_several(find: Find, interval_s: float, until_finished: bool) -> None:
    """Show a table of runs, and each run opened from it, until a key or the end of all runs closes it."""
    poller, console, keyboard = RunPoller(), Console(), Keyboard(sys.stdin.fileno())
    overview = Overview(lambda: poller.look(find()), interval_s, until_finished)
    while overview.show(console, keyboard) is Ending.OPENED:
        row = overview.selected
        assert row is not None
        target = RunDir(Path(row.run_dir))

        def look(run: RunDir = target) -> RunStatus:
            return poller.look_at(run, find())

        # The view of a run that has already ended stays open.
        ends = until_finished and row.is_live
        screen = Screen(target, look, interval_s, ends, is_opened=True)
        if screen.show(console, keyboard) is Ending.LOG:
            _follow_log(target)
    if until_finished:
        show(overview.rows)


def _follow_log(run: RunDir) -> None:
    """Replace this process by `stk logs --follow`. Does not return."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "slurm", "logs", "--follow", str(run.path)])
