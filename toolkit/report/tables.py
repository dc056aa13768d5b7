"""A run, or several side by side, as tables for a terminal of any width, with or without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toolkit.report import facts, formats
from toolkit.report.values import ClassReport, RunSummary, config_differences, score_names

_STATE_STYLES = {"finished": "bold green", "failed": "bold red", "unfinished": "bold yellow"}
_FAINT_RGB = (118, 126, 134)
_DEEP_RGB = (0, 114, 178)
_LABEL_WIDTH = 24
_CONFUSIONS = 10
_CLASSES = 40


def render(summaries: Sequence[RunSummary], console: Console) -> None:
    """Print one run in full, or a comparison of several."""
    if len(summaries) != 1:
        console.print(comparison(summaries))
        if differences := config_differences(summaries):
            console.print(_differences(summaries, differences))
        return
    (summary,) = summaries
    console.print(headline(summary))
    if summary.failure:
        console.print(failure(summary))
    if summary.scores:
        console.print(scores(summary))
    for split, report in summary.classes.items():
        console.print(classes(split, report))
        console.print(_fitting_confusion(split, report, console))


def headline(summary: RunSummary) -> RenderableType:
    """Return what stands at the top: run, state, progress, where, best."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.headline(summary):
        grid.add_row(name, Text(value, style=_STATE_STYLES.get(value, "") if name == "state" else ""))
    title = Text(f" {summary.run_id} ", style="bold")
    return Panel(grid, title=title, title_align="left", box=box.ROUNDED, expand=False)


def failure(summary: RunSummary) -> RenderableType:
    """Return the first failing rank's error, with what to do."""
    assert summary.failure is not None
    found = summary.failure
    parts = [Text(f"{found.error}: {found.message}", style="bold", overflow="fold")]
    parts.append(Text(facts.failure_place(summary), style="dim"))
    if found.advice:
        parts.append(Text(found.advice, overflow="fold"))
    if found.traceback:
        parts.append(Text("\n" + found.traceback.rstrip(), style="dim", overflow="fold"))
    title = Text(" failed ", style="bold red")
    return Panel(Group(*parts), title=title, title_align="left", border_style="red")


def scores(summary: RunSummary) -> Table:
    """Return the metrics of each split."""
    names = score_names([summary])
    table = _table("Scores")
    table.add_column("split")
    for name in names:
        table.add_column(Text(formats.metric_title(name)), justify="right")
    for split, values in summary.scores.items():
        table.add_row(Text(split), *(formats.score(name, values.get(name)) for name in names))
    return table


def classes(split: str, report: ClassReport) -> Table:
    """Return precision, recall, F1 and support of each class, with the macro averages below."""
    table = _table(f"Classes ({split})", show_footer=True)
    samples = sum(row.support for row in report.classes)
    table.add_column("class", footer="macro average", overflow="fold")
    for name in ("precision", "recall", "f1"):
        footer = formats.score(name, getattr(report, f"macro_{name}"))
        table.add_column(formats.metric_title(name), footer=footer, justify="right", no_wrap=True)
    table.add_column("support", footer=formats.count(samples), justify="right", no_wrap=True)
    shown = report.classes
    if len(shown) > _CLASSES:
        shown = tuple(sorted(shown, key=lambda row: row.f1)[:_CLASSES])
        table.caption = Text(f"the {_CLASSES} lowest F1 of {len(report.classes)} classes")
    for row in shown:
        values = (formats.score(name, getattr(row, name)) for name in ("precision", "recall", "f1"))
        label = Text(formats.one_line(row.label, 2 * _LABEL_WIDTH))
        table.add_row(label, *values, formats.count(row.support))
    return table


def confusion(split: str, report: ClassReport) -> Table:
    """Return the confusion matrix: a row for each true class, shaded by its share of the row."""
    table = _table(f"Confusion ({split})")
    table.add_column("true ╲ predicted", no_wrap=True)
    for label in report.labels:
        table.add_column(Text(formats.one_line(label, 12)), justify="right", no_wrap=True)
    for position, (label, row) in enumerate(zip(report.labels, report.confusion, strict=True)):
        cells = [_cell(value, sum(row), position == column) for column, value in enumerate(row)]
        table.add_row(Text(formats.one_line(label, _LABEL_WIDTH)), *cells)
    return table


def confusions(split: str, report: ClassReport) -> Table:
    """Return the most frequent mistakes, for a matrix that is too wide."""
    table = _table(f"Most frequent confusions ({split})")
    table.add_column("true", overflow="fold")
    table.add_column("predicted", overflow="fold")
    table.add_column("samples", justify="right")
    for true, predicted, samples in report.confusions(_CONFUSIONS):
        labels = (Text(formats.one_line(label, _LABEL_WIDTH)) for label in (true, predicted))
        table.add_row(*labels, formats.count(samples))
    return table


def comparison(summaries: Sequence[RunSummary]) -> Table:
    """Return one row for each run with the metrics that matter most."""
    rows = facts.comparison(summaries)
    table = _table("Runs")
    table.add_column(Text(rows[0][0]), overflow="fold", ratio=1)
    for name in rows[0][1:]:
        table.add_column(Text(name), justify="left" if name == "state" else "right")
    for cells in rows[1:]:
        table.add_row(*(Text(cell, style=_STATE_STYLES.get(cell, "")) for cell in cells))
    return table


def _differences(summaries: Sequence[RunSummary], differences: dict[str, tuple[object, ...]]) -> Table:
    table = _table("What differs")
    table.add_column("key", overflow="fold")
    for summary in summaries:
        table.add_column(Text(summary.run_id), justify="right", overflow="fold")
    for key, values in differences.items():
        table.add_row(Text(key), *(Text(facts.setting(value)) for value in values))
    return table


def _fitting_confusion(split: str, report: ClassReport, console: Console) -> Table:
    matrix = confusion(split, report)
    needed = Measurement.get(console, console.options.update(width=10_000), matrix).minimum
    return matrix if needed <= console.width else confusions(split, report)


def _cell(value: int, row_sum: int, diagonal: bool) -> Text:
    """Shade a count by its share of the row, from grey to blue.

    White on a middle tone, and no shade for next to nothing: it must look right on a light terminal
    and on a dark one, and nobody can tell which it is.
    """
    share = value / row_sum if row_sum else 0.0
    weight = "bold " if diagonal else ""
    text = formats.count(value)
    if share < 0.02:
        return Text(text, style="bold" if diagonal else "dim")
    depth = share**formats.SHADE_POWER
    red, green, blue = (
        round(low + (high - low) * depth) for low, high in zip(_FAINT_RGB, _DEEP_RGB, strict=True)
    )
    return Text(text, style=f"{weight}#ffffff on rgb({red},{green},{blue})")


def _table(title: str, show_footer: bool = False) -> Table:
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_footer=show_footer,
        footer_style="bold",
        pad_edge=False,
    )
