"""The text output of `stk doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from slurm.client.quantities import format_minutes
from slurm.doctor.findings import Finding, Level
from slurm.doctor.partitions import PartitionRow
from slurm.doctor.run_checks import Report
from toolkit.report.formats import NOTHING, clean

_STYLES = {Level.OK: "green", Level.NOTE: "cyan", Level.CHANGE: "yellow", Level.PROBLEM: "bold red"}
_QUIET = "bright_black"
#: Indentation below a heading.
_INDENT = 2
#: The least width of a terminal for all columns of the table of partitions.
_WIDE = 100


def show(report: Report) -> None:
    console = Console()
    for part in parts(report, console.width):
        console.print(part)


def parts(report: Report, width: int) -> Iterator[RenderableType]:
    """Yield the parts of the output, from top to bottom, for a terminal of this width."""
    for title, findings in report.sections.items():
        yield Text(clean(title), style="bold")
        yield Padding(_findings(findings), (0, 0, 1, _INDENT))
        if title == "Slurm" and report.partitions:
            yield Text("Partitions", style="bold")
            yield Padding(_partitions(report.partitions, width), (0, 0, 1, _INDENT))
    yield _summary(report)


def _findings(findings: Iterable[Finding]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=len(Level.PROBLEM))
    table.add_column()
    for each in findings:
        style = _STYLES[each.level]
        text = Text(_line(each.found))
        if each.follows:
            text.append(f"\n→ {_line(each.follows)}", style=_QUIET)
        if each.key and each.level in (Level.CHANGE, Level.PROBLEM):
            text.append(f"\n  {_line(each.key)}", style=style)
        table.add_row(Text(each.level, style=style), text)
    return table


def _line(text: str) -> str:
    return " ".join(str(clean(text)).split())


def _partitions(rows: tuple[PartitionRow, ...], width: int) -> Table:
    is_wide = width >= _WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", overflow="fold")
    for title in ("limit", "idle", "mixed", "hosts"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("GPUs free", overflow="fold")
    table.add_column("preempted by", overflow="fold")
    if is_wide:
        table.add_column("tier", justify="right")
        table.add_column("without time", justify="right", no_wrap=True)
    for row in rows:
        cells = _cells(row)
        table.add_row(*(cells if is_wide else cells[:-2]), style=None if row.state == "UP" else _QUIET)
    return table


def _cells(row: PartitionRow) -> list[str]:
    state = "" if row.state == "UP" else f" ({row.state})"
    return [
        _line(f"{row.name}{'*' if row.is_default else ''}{state}"),
        _limit(row.max_time_min),
        str(row.idle),
        str(row.mixed),
        str(row.hosts),
        _gpus(row.gpus_free, row.gpus),
        _line(", ".join(row.preempted_by)) or NOTHING,
        str(row.tier),
        "the limit" if row.default_time_min is None else _limit(row.default_time_min),
    ]


def _limit(minutes: int | None) -> str:
    return "none" if minutes is None else format_minutes(minutes)


def _gpus(free: Mapping[str, int], all_of_them: Mapping[str, int]) -> str:
    shown = (
        f"{free.get(kind, 0)} of {number}{'' if kind == 'gpu' else f' {kind}'}"
        for kind, number in all_of_them.items()
    )
    return _line(", ".join(shown)) or NOTHING


def _summary(report: Report) -> Group:
    """Return the count of each level, and the problems and changes once more."""
    every = [(title, each) for title, findings in report.sections.items() for each in findings]
    counts = Counter(finding.level for _, finding in every)
    shown = Text("  ").join(
        Text(f"{counts[level]} {level}", style=_STYLES[level]) for level in Level if counts[level]
    )
    urgent = [item for level in (Level.PROBLEM, Level.CHANGE) for item in every if item[1].level is level]
    return Group(shown, *(_reminder(*item) for item in urgent))


def _reminder(title: str, finding: Finding) -> Text:
    key = f" ({_line(finding.key)})" if finding.key else ""
    return Text(f"{finding.level}: {_line(title)}: {_line(finding.found)}{key}", style=_STYLES[finding.level])
