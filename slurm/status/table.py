"""`stk status` for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from slurm.status.rows import RunStatus
from toolkit.metrics.headline import headline

_COLOURS = {
    "running": "green",
    "pending": "yellow",
    "requeued": "yellow",
    "held": "magenta",
    "failed": "red",
    "cancelled": "bright_black",
    "unknown": "red",
}


def show(rows: Sequence[RunStatus]) -> None:
    """Print a table of runs, and under it the reasons, which are too long for a column."""
    Console().print(table(rows))


def table(rows: Sequence[RunStatus]) -> Group:
    """The same, to be printed or drawn again and again."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    table.add_column("state")
    for title in ("step", "epoch", "loss", "validation", "restarts"):
        table.add_column(title, justify="right")
    table.add_column("job")
    for row in rows:
        table.add_row(*_cells(row))
    reasons = [Text(f"{row.run_id}: {row.reason}", style="bright_black") for row in rows if row.reason]
    return Group(table, *reasons)


def _cells(row: RunStatus) -> list[str | Text]:
    metrics = row.metrics
    return [
        row.run_id,
        Text(row.state, style=_COLOURS.get(row.state, "")),
        f"{row.step}/{row.total_steps or '?'}",
        _number(row.epoch, 2),
        _number(metrics.get("train_loss"), 4),
        _number(headline(metrics), 4),
        str(row.restarts),
        row.job_id or "",
    ]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
