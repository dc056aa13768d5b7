"""Columns of the table of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from slurm.status.rows import RunStatus
from toolkit.system.output.amounts import duration

_COLOURS = {
    "running": "green",
    "pending": "yellow",
    "requeued": "yellow",
    "held": "magenta",
    "failed": "red",
    "cancelled": "bright_black",
    "unknown": "red",
}
#: Titles of all columns except that of the metric.
_TITLES = frozenset({
    "run", "state", "step", "%", "ETA", "epoch", "loss", "samples/s", "tokens/s", "restarts", "GPU-h",
    "hosts", "job",
})  # fmt: skip
#: Beginnings of `doing` if something is wrong.
_TROUBLE = ("silent", "standing still", "never starts")
#: Terminals differ in the width of characters next to these: joiner, emoji presentation.
_WIDTH_CHANGERS = dict.fromkeys((0x200D, 0xFE0F))
#: Largest number of hosts that are all named.
_NAMED_HOSTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    need    the order in which columns get space; columns with 0 are always shown
    """

    title: str
    cells: list[str]
    need: int
    is_number: bool = True


def columns(rows: Sequence[RunStatus]) -> list[Column]:
    """Return the columns of these rows in order, without empty ones."""
    names = {row.main_metric for row in rows if row.main_metric is not None}
    # The main metric, if all rows have the same one.
    metric = printable(names.pop()) if len(names) == 1 else None
    title = metric or "validation"
    if title in _TITLES:
        # Another column has that title, such as loss.
        title = f"validation {metric}"

    def column(title: str, need: int, cell: Callable[[RunStatus], str], *, is_number: bool = True) -> Column:
        return Column(title=title, cells=[cell(row) for row in rows], need=need, is_number=is_number)

    every = [
        column("run", 0, lambda row: printable(row.run_id), is_number=False),
        column("state", 0, lambda row: printable(row.doing or row.state), is_number=False),
        column("step", 5, _steps),
        column("%", 1, lambda row: "" if row.percent is None else f"{int(row.percent)}"),
        column("ETA", 2, lambda row: "" if row.eta_s is None else duration(row.eta_s)),
        column("epoch", 7, lambda row: "" if row.epoch is None else f"{row.epoch:.2f}"),
        column("loss", 4, lambda row: value(row.loss)),
        column(title, 3, lambda row: _metric(row, metric)),
        column("samples/s", 9, lambda row: _speed(row, of_tokens=False)),
        column("tokens/s", 9, lambda row: _speed(row, of_tokens=True)),
        column("restarts", 6, lambda row: str(row.restarts or "")),
        column("GPU-h", 8, lambda row: "" if row.gpu_hours is None else f"{row.gpu_hours:.1f}"),
        column("hosts", 10, lambda row: printable(hosts(row.hosts)), is_number=False),
        column("job", 11, lambda row: printable(row.job_id or ""), is_number=False),
    ]
    return [each for each in every if each.need == 0 or any(each.cells)]


def _speed(row: RunStatus, *, of_tokens: bool) -> str:
    samples, tokens = row.metrics.get("train_samples_per_s"), row.tokens_per_s
    # If samples have no lengths, each counts as one token.
    has_tokens = bool(tokens) and tokens != samples
    number = tokens if has_tokens else samples
    return f"{number:,.0f}" if number and has_tokens == of_tokens else ""


def colour(row: RunStatus) -> str:
    """Return the colour of a row's state; red if `doing` shows a problem."""
    return "red" if row.doing.startswith(_TROUBLE) else _COLOURS.get(row.state, "")


def reason(row: RunStatus) -> str:
    """Return the text below a row: its reason, unless that repeats the state."""
    # The reason of a pending run is Slurm's word; after a colon there may be advice.
    if row.state in ("pending", "requeued") and ":" not in row.reason:
        return ""
    return printable(row.reason.replace("\n", " "))


def footer(rows: Sequence[RunStatus]) -> str:
    """Return the count of each state, and the total use."""
    states = sorted(row.state for row in rows)
    counts = sorted((-len(list(group)), state) for state, group in groupby(states))
    hours = [row.gpu_hours for row in rows if row.gpu_hours is not None]
    used = f"; {sum(hours):,.1f} GPU-hours" if hours else ""
    return f"{len(rows):,} runs: {', '.join(f'{-count:,} {state}' for count, state in counts)}{used}"


def value(number: float | None) -> str:
    """Return a loss or a score as text."""
    if number is None:
        return ""
    return f"{number:.4f}" if number == 0 or 1e-3 <= abs(number) < 1e4 else f"{number:.2e}"


def hosts(names: Sequence[str]) -> str:
    """Return one or two names, or the first name and the number of others."""
    if len(names) <= _NAMED_HOSTS:
        return ", ".join(names)
    return f"{names[0]} +{len(names) - 1}"


def printable(text: str) -> str:
    """Return text from a folder or a cluster on one line, without control characters.

    The width of the result is the sum of the widths of its characters.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_WIDTH_CHANGERS)
    if text.isprintable():
        return text
    from toolkit.report.formats import clean  # slow to import, and hardly any text needs it

    return str(clean(text)).replace("\n", "␊").replace("\t", "␉")


def _steps(row: RunStatus) -> str:
    if not row.step and not row.total_steps:
        return ""
    return f"{row.step}/{row.total_steps or '?'}"


def _metric(row: RunStatus, common: str | None) -> str:
    if row.main_value is None:
        return ""
    return value(row.main_value) if common else f"{printable(row.main_metric or '')} {value(row.main_value)}"
