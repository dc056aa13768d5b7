"""Time of a run, attempt by attempt, as a table and in words; the parts of it, with their colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.report import formats
from toolkit.report.blocks import Row, Table, table
from toolkit.report.model import RunSummary
from toolkit.report.plotting.themes import Theme
from toolkit.run.attempts.goodput import Goodput
from toolkit.run.attempts.resource_hours import AttemptUsage, Hours, total_cpu_hours, total_gpu_hours

NOTE = (
    "Goodput: the share of training in the time in which the run held its hosts. Repeated: steps that were "
    "lost and done again. Finishing: after the training. Away: before the next attempt was submitted."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePart:
    """One part of a run's time.

    name    field of toolkit.run.attempts.goodput.Goodput, and its title
    mark    a cell of a bar in a terminal, distinct without colour, too
    style   its colour in a terminal
    colour  its colour in a plot, from a theme
    """

    name: str
    mark: str
    style: str
    colour: Callable[[Theme], str]


#: In the order of an attempt.
TIME_PARTS = (
    TimePart(name="away", mark=" ", style="dim", colour=lambda theme: theme.grid),
    TimePart(name="waiting", mark="·", style="bright_black", colour=lambda theme: theme.quiet),
    TimePart(name="starting", mark="▒", style="yellow", colour=lambda theme: theme.series[4]),
    TimePart(name="training", mark="█", style="green", colour=lambda theme: theme.series[2]),
    TimePart(name="repeated", mark="╳", style="red", colour=lambda theme: theme.series[1]),
    TimePart(name="saving", mark="▪", style="cyan", colour=lambda theme: theme.series[5]),
    TimePart(name="finishing", mark="░", style="magenta", colour=lambda theme: theme.series[3]),
)
BY_NAME = {part.name: part for part in TIME_PARTS}


def time_table(summary: RunSummary) -> Table:
    """Return one row for each attempt, and the sums of several."""
    spent = [attempt.time.spent for attempt in summary.attempt_usage]
    names = [part.name for part in TIME_PARTS if any(getattr(each, part.name) for each in spent)]
    gpus = any(attempt.gpus for attempt in summary.attempt_usage)
    head = ["attempt", *names, "goodput", "GPU-h" if gpus else "CPU-h"]
    rows = [
        [
            str(attempt.time.attempt),
            *_cells(attempt.time.spent, names, attempt.gpu_hours if gpus else attempt.cpu_hours),
        ]
        for attempt in summary.attempt_usage
    ]
    hours = total_gpu_hours(summary.attempt_usage) if gpus else total_cpu_hours(summary.attempt_usage)
    feet = (("all", *_cells(summary.goodput, names, hours)),) if len(rows) > 1 else ()
    # Usually the smallest parts.
    optional = tuple(head.index(name) for name in ("saving", "starting", "finishing") if name in head)
    return table("Where the time went", head, rows, feet=feet, optional=optional, note=NOTE)


def _cells(spent: Goodput, names: Sequence[str], hours: Hours) -> Row:
    share = formats.share(spent.training, spent.allocated)
    return (*(seconds_text(getattr(spent, name)) for name in names), share, formats.hours(hours.allocated))


def seconds_text(seconds: float) -> str:
    """Return a time for a cell; a dash for none."""
    return formats.clock(seconds) if seconds else formats.NOTHING


def goodput_words(summary: RunSummary) -> str:
    """Return the share of training in the allocated time; empty for a run that has not begun."""
    spent = summary.goodput
    if not spent.allocated:
        return ""
    return (
        f"{formats.share(spent.training, spent.allocated)} of {formats.duration(spent.allocated)} allocated"
    )


def hours_words(attempts: Sequence[AttemptUsage]) -> str:
    """Return the GPU-hours, or the CPU-hours of a run without GPUs, and how many of them were lost."""
    name, hours = ("GPU-hours", total_gpu_hours(attempts))
    if not hours.allocated:
        name, hours = ("CPU-hours", total_cpu_hours(attempts))
    if not hours.allocated:
        return ""
    return (
        f"{formats.hours(hours.allocated)} {name}: {formats.hours(hours.useful)} useful, "
        f"{formats.hours(hours.lost)} lost"
    )
