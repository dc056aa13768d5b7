"""Where the time of a run went, start by start, as a table and in words."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.attempts.goodput import Goodput
from toolkit.attempts.held import Held, Hours, total_cpu_hours, total_gpu_hours
from toolkit.report import formats
from toolkit.report.sheets import Row, Sheet, sheet
from toolkit.report.spent.kinds import KINDS
from toolkit.report.values import RunSummary

NOTE = (
    "Goodput: training, of the time in which the run held its hosts. Repeated: steps that were lost with a "
    "start and done again. Away: nobody is known to have asked for the next start."
)


def time_sheet(summary: RunSummary) -> Sheet:
    """Return one row for each start, and the sums of several."""
    kinds = [kind for kind in KINDS if any(getattr(start.time.spent, kind.name) for start in summary.starts)]
    names = [kind.name for kind in kinds]
    gpus = any(start.gpus for start in summary.starts)
    head = ["start", *(kind.title for kind in kinds), "goodput", "GPU-h" if gpus else "CPU-h"]
    rows = [
        [
            str(start.time.attempt),
            *_cells(start.time.spent, names, start.gpu_hours if gpus else start.cpu_hours),
        ]
        for start in summary.starts
    ]
    hours = total_gpu_hours(summary.starts) if gpus else total_cpu_hours(summary.starts)
    feet = (("all", *_cells(summary.goodput, names, hours)),) if len(rows) > 1 else ()
    # The smallest of what a run usually has.
    optional = tuple(head.index(name) for name in ("saving", "starting") if name in head)
    return sheet("Where the time went", head, rows, feet=feet, optional=optional, note=NOTE)


def _cells(spent: Goodput, names: Sequence[str], hours: Hours) -> Row:
    share = formats.share(spent.training, spent.allocated)
    return (*(seconds_text(getattr(spent, name)) for name in names), share, formats.hours(hours.held))


def seconds_text(seconds: float) -> str:
    """Return a time for a cell; a dash for none."""
    return formats.clock(seconds) if seconds else formats.NOTHING


def goodput_words(summary: RunSummary) -> str:
    """Return the share of training in the time that was allocated; empty for a run that has not begun."""
    spent = summary.goodput
    if not spent.allocated:
        return ""
    return (
        f"{formats.share(spent.training, spent.allocated)} of {formats.duration(spent.allocated)} allocated"
    )


def hours_words(starts: Sequence[Held]) -> str:
    """Return the GPU-hours, or the CPU-hours of a run without GPUs, and how many of them were lost."""
    name, hours = ("GPU-hours", total_gpu_hours(starts))
    if not hours.held:
        name, hours = ("CPU-hours", total_cpu_hours(starts))
    if not hours.held:
        return ""
    return (
        f"{formats.hours(hours.held)} {name}: {formats.hours(hours.useful)} useful, "
        f"{formats.hours(hours.lost)} lost"
    )
