"""stk watch"""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from time import sleep, strftime

from slurm.runs.watching.rate_limited_poll import RunPoller
from slurm.status.rows import RunStatus
from toolkit.run.run_dir import find_run, runs_named


def run(arguments: Namespace) -> int:
    """Show runs until Ctrl-C, and let requeued jobs start without Slurm's two minutes of waiting."""
    try:
        if _has_screen():
            _watch_on_terminal(arguments)
        else:
            _watch(arguments)
    except (KeyboardInterrupt, EOFError):
        print()
    return 0


def _has_screen() -> bool:
    """Whether there is a terminal that can be drawn on, with a keyboard."""
    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def _watch_on_terminal(arguments: Namespace) -> None:
    from slurm.runs.watching.on_terminal import watch_one, watch_several  # slow, and nothing else needs them

    if len(arguments.runs) == 1:
        watch_one(find_run(arguments.runs[0]), arguments.interval, arguments.until_finished)
    else:
        # Looked for each time: runs come and go.
        watch_several(lambda: runs_named(arguments.runs), arguments.interval, arguments.until_finished)


def _watch(arguments: Namespace) -> None:
    view = _Table() if sys.stdout.isatty() else _Lines()
    poller = RunPoller()
    with view:
        while True:
            rows = poller.look(runs_named(arguments.runs))
            view.show(rows)
            if arguments.until_finished and not any(row.is_live for row in rows):
                return
            sleep(max(0.0, arguments.interval))


class _Lines:
    """A line for each change: for a log."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, str]] = {}

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, rows: Sequence[RunStatus]) -> None:
        for row in rows:
            seen = (row.state, row.reason)
            if self._shown.get(row.run_id) != seen:
                self._shown[row.run_id] = seen
                clock = strftime("%H:%M:%S")
                step = f"step {row.step}/{row.total_steps or '?'}"
                print(clock, row.run_id, row.state, step, row.reason, flush=True)


class _Table:
    """A table that is drawn anew in place."""

    def __enter__(self) -> None:
        from rich.live import Live  # slow, and only a terminal needs it

        # As Ctrl-C, so that the cursor comes back.
        self._handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
        self._live = Live(auto_refresh=False)
        self._live.__enter__()

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)
        signal.signal(signal.SIGTERM, self._handler)

    def show(self, rows: Sequence[RunStatus]) -> None:
        from slurm.status.layout import table

        self._live.update(table(rows), refresh=True)
