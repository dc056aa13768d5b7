"""`stk watch` on a terminal with a keyboard: one run, or a table from which each run can be opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from slurm.runs.watching.keyboard import Keyboard
from slurm.runs.watching.live_view import Ending
from slurm.runs.watching.overview import Overview
from slurm.runs.watching.polling import RunPoller
from slurm.runs.watching.screen import Screen
from slurm.status.layout import show
from toolkit.run.run_dir import RunDir

#: A function that returns the current runs.
Find = Callable[[], list[RunDir]]


def watch_one(target: RunDir, interval_s: float, until_finished: bool) -> None:
    """Show one run until a key or the end of the run ends the view."""
    poller = RunPoller()
    screen = Screen(target, lambda: poller.look([target])[0], interval_s, until_finished)
    if screen.show(Console(), Keyboard(sys.stdin.fileno())) is Ending.LOG:
        _follow_log(target)


def watch_several(find: Find, interval_s: float, until_finished: bool) -> None:
    """Show a table of runs, and each run opened from it, until a key or the end of all runs closes it."""
    poller, console, keyboard = RunPoller(), Console(), Keyboard(sys.stdin.fileno())
    overview = Overview(lambda: poller.look(find()), interval_s, until_finished)
    while overview.show(console, keyboard) is Ending.OPENED:
        row = overview.selected
        assert row is not None
        target = RunDir(Path(row.run_dir))
        # The view of a run that has already ended stays open.
        ends = until_finished and row.is_live
        screen = _opened(target, poller, find, interval_s, until_finished=ends)
        if screen.show(console, keyboard) is Ending.LOG:
            _follow_log(target)
    if until_finished:
        # Leave the final states on the terminal.
        show(overview.rows)


def _opened(
    target: RunDir, poller: RunPoller, find: Find, interval_s: float, *, until_finished: bool
) -> Screen:
    return Screen(target, lambda: poller.look_at(target, find()), interval_s, until_finished, is_opened=True)


def _follow_log(run: RunDir) -> None:
    """Replace this process by `stk logs --follow`. Does not return."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "slurm", "logs", "--follow", str(run.path)])
