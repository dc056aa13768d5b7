"""stk drill"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from slurm.commands.experiments.local_world import check_procs
from slurm.drill.cluster import ClusterDrill
from slurm.drill.local import INTERRUPTIONS, LocalDrill
from slurm.drill.rows import Report, Row
from slurm.drill.task import drill_experiment
from slurm.submission.submit import choose_cluster
from toolkit.errors import UserError
from toolkit.exit_codes import ExitCode
from toolkit.reliability.early_signals import interrupt_on_request
from toolkit.run.run_dir import experiment_dir
from toolkit.system.output.json_text import json_text

#: Width of the table if standard output is not a terminal.
_WIDTH = 130

if TYPE_CHECKING:
    from rich.table import Table


def run(arguments: Namespace) -> int:
    """Interrupt a run on purpose and print a verdict; return 0 if it resumed with the same bytes, else 4."""
    cluster = choose_cluster(arguments.cluster)
    folder = experiment_dir() / "drills" / time.strftime("%Y%m%d-%H%M%S")
    config = Path(arguments.config) if arguments.config else None
    overrides = arguments.overrides
    if config is not None and "=" in arguments.config and not os.path.exists(config):
        # A key without a CONFIG before it.
        config, overrides = None, [arguments.config, *overrides]
    try:
        experiment = drill_experiment(config, overrides, folder, len(INTERRUPTIONS))
        if cluster == "local":
            check_procs("--procs", arguments.procs, experiment)
    except UserError:
        # The example of a workload.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    report = Report(cluster=cluster, task=experiment.name, folder=str(folder))
    interrupt_on_request(signal.SIGTERM, signal.SIGHUP)
    with _shown(report, quiet=arguments.json) as say:
        drill: LocalDrill | ClusterDrill
        if cluster == "slurm":
            drill = ClusterDrill(experiment, folder, say)
        else:
            drill = LocalDrill(experiment, folder, arguments.procs, say)
        # Closes the generator at once, which ends the jobs or processes.
        with closing(drill.run()) as found:
            for rows in found:
                report.rows[:] = rows
        report.not_tried.extend(drill.not_tried)
    if arguments.json:
        print(json_text(report.to_json()))
    else:
        _conclude(report)
    if report.is_passed and not arguments.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if report.is_passed else ExitCode.FAILED


@contextmanager
def _shown(report: Report, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show the rows as they are added; yield a function that shows the current action."""
    if quiet:
        yield lambda what: None
        return
    from rich.console import Console
    from rich.live import Live

    from toolkit.training.output.progress_display import is_on_terminal

    console = Console()
    if not is_on_terminal(console):
        try:
            yield lambda what: print(f"… {what}", file=sys.stderr, flush=True)
        finally:
            if report.rows:
                Console(width=_WIDTH).print(_table(report))
        return
    with Live(_table(report), console=console, refresh_per_second=2) as live:
        yield lambda what: live.update(_table(report, what))
        live.update(_table(report))


def _table(report: Report, now: str = "") -> Table:
    from rich.table import Table

    table = Table(
        title=f"stk drill: {report.task} on {report.cluster}", caption=f"now: {now}" if now else None
    )
    columns = ("what happened", "processes", "signals seen", "gone after", "steps lost", "start", "away")
    for name in (*columns, "same bytes"):
        table.add_column(name)
    for row in report.rows:
        table.add_row(*_cells(row), style=None if row.is_good else "red")
    return table


def _cells(row: Row) -> tuple[str, ...]:
    same = {True: "yes", False: "NO", None: "-"}[row.same_bytes]
    return (
        row.what,
        row.processes,
        " ".join(row.signals) or "-",
        _seconds(row.left_s),
        "-" if row.lost_steps is None else str(row.lost_steps),
        _seconds(row.back_s),
        _seconds(row.away_s),
        f"{same}: {row.fault}" if row.fault else same,
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _conclude(report: Report) -> None:
    print("start: from process start to the first new step; away: from the interruption to that step")
    for what in report.not_tried:
        print(f"not tried  {what}")
    if report.is_passed:
        print("verdict    passed: it came back each time, with the same bytes")
    else:
        print(f"verdict    FAILED: the runs and their logs are in {report.folder}")
