"""stk watch"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from time import sleep, strftime

from slurm.release import Releaser
from slurm.status.rows import RunStatus, status
from toolkit.create import experiment_dir
from toolkit.rundir import find_run, find_runs


def run(arguments: Namespace) -> int:
    """Show runs until Ctrl-C, and let requeued jobs start without Slurm's two minutes of waiting."""
    try:
        _watch(arguments)
    except KeyboardInterrupt:
        print()
    return 0


def _watch(arguments: Namespace) -> None:
    parent = experiment_dir()
    view = _Table() if sys.stdout.isatty() else _Lines()
    releaser = Releaser()
    with view:
        while True:
            # Looked for each time: runs come and go.
            runs = [find_run(name, parent) for name in arguments.runs] or list(find_runs(parent))
            rows = status(runs)
            for row in rows:
                releaser.release(row)
            view.show(rows)
            if arguments.until_finished and not any(row.is_live for row in rows):
                return
            sleep(arguments.interval)


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

        self._live = Live(auto_refresh=False)
        self._live.__enter__()

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, rows: Sequence[RunStatus]) -> None:
        from slurm.status.table import table

        self._live.update(table(rows), refresh=True)
