"""stk watch"""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import sleep, strftime

from slurm.runs.watching.polling import RunPoller
from slurm.status.columns import printable
from slurm.status.rows import RunStatus
from toolkit.run.run_dir import find_run, runs_named

#: A function that shows the current state of the runs.
Show = Callable[[Sequence[RunStatus]], None]


def run(arguments: Namespace) -> int:
    """Show runs until Ctrl-C, and let requeued jobs start without Slurm's two minutes of waiting."""
    try:
        # On a terminal with a keyboard that supports drawing.
        has_keys = sys.stdout.isatty() and sys.stdin.isatty()
        if has_keys and os.environ.get("TERM") not in (None, "", "dumb"):
            _watch_on_terminal(arguments)
        else:
            _watch(arguments)
    except (KeyboardInterrupt, EOFError):
        print()
    return 0


def _watch_on_terminal(arguments: Namespace) -> None:
    from slurm.runs.watching.on_terminal import watch_one, watch_several  # slow, and nothing else needs them

    if len(arguments.runs) == 1:
        watch_one(find_run(arguments.runs[0]), arguments.interval, arguments.until_finished)
    else:
        # The runs are searched at each update, because runs are added and removed.
        watch_several(lambda: runs_named(arguments.runs), arguments.interval, arguments.until_finished)


def _watch(arguments: Namespace) -> None:
    poller = RunPoller()
    with _table() if sys.stdout.isatty() else nullcontext(_print_changes()) as show:
        while True:
            rows = poller.look(runs_named(arguments.runs))
            show(rows)
            if arguments.until_finished and not any(row.may_live for row in rows):
                return
            sleep(arguments.interval)


def _print_changes() -> Show:
    """Return a function that prints a line for each change, for output to a file."""
    shown: dict[str, tuple[str, str]] = {}

    def show(rows: Sequence[RunStatus]) -> None:
        for row in rows:
            seen = (row.state, row.reason)
            if shown.get(row.run_dir) != seen:
                shown[row.run_dir] = seen
                step = f"step {row.step}/{row.total_steps or '?'}"
                print(strftime("%H:%M:%S"), row.run_id, row.state, step, printable(row.reason), flush=True)

    return show


@contextmanager
def _table() -> Iterator[Show]:
    """Yield a function that redraws a table in place."""
    # Slow, and only a terminal needs them.
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from slurm.status.table import lay_out

    def show(rows: Sequence[RunStatus]) -> None:
        lines = lay_out(rows, live.console.width)
        table = Group(*(Text.assemble(*line, no_wrap=True, overflow="crop") for line in lines))
        live.update(table, refresh=True)

    # SIGTERM raises KeyboardInterrupt, so that rich restores the cursor.
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Live(auto_refresh=False) as live:
            yield show
    finally:
        signal.signal(signal.SIGTERM, handler)
