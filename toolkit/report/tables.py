"""A run, or several side by side, as tables for a terminal of any width, with or without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toolkit.report import facts, formats, slices
from toolkit.report.advice import Advice
from toolkit.report.class_tables import class_tables, thresholds, titled
from toolkit.report.comparison.reading import Compared
from toolkit.report.comparison.sheets import sheets
from toolkit.report.sheets import Sheet
from toolkit.report.spent.bars import time_line
from toolkit.report.spent.times import time_sheet
from toolkit.report.spent.usage import usage_sheet
from toolkit.report.values import RunSummary

_STATE_STYLES = {
    "finished": "bold green",
    "failed": "bold red",
    "unfinished": "bold yellow",
    "unreadable": "bold red",
}
#: A split and a metric, which a narrow terminal sets in lines.
_EPOCH_HEADING_WIDTH = 32
_LABEL_WIDTH = 24
_LABELS = 40
_EPOCHS = 20
_STARTS = 15
_RANKS = 16
_ROWS = 60


def render(summaries: Sequence[RunSummary], console: Console, advice: Sequence[Advice] | None = None) -> None:
    """Print one run in full, with the advice on it, or a comparison of several."""
    if len(summaries) != 1:
        render_comparison(Compared(runs=tuple(summaries), unreadable={}), console)
        return
    (summary,) = summaries
    console.print(headline(summary))
    if summary.failure:
        console.print(failure(summary))
    if summary.labels:
        for title, splits in (
            ("Labels", summary.labels.texts),
            ("Labels (fragments)", summary.labels.samples),
        ):
            if splits is summary.labels.texts or summary.labels.folded:
                console.print(labels(title, summary.labels.labels, splits))
    if rows := facts.epochs(summary):
        console.print(epochs(rows))
    if summary.scores:
        console.print(scores(summary))
    _render_classes(summary, console)
    for table in slice_tables(summary):
        console.print(table)
    _render_spent(summary, console)
    if advice is not None:
        _render_advice(advice, console)


def render_comparison(compared: Compared, console: Console) -> None:
    """Print several runs side by side."""
    for each in sheets(compared):
        console.print(sheet(_fitted(_shortened(each, _ROWS), console.width), console.width))


def _shortened(table_: Sheet, most: int) -> Sheet:
    """A table of at most so many rows: runs of different tasks differ in all their keys."""
    if len(table_.rows) <= most:
        return table_
    note = f"the first {most} of {len(table_.rows)} rows; the page has them all\n{table_.note}"
    return replace(table_, rows=table_.rows[:most], note=note.rstrip())


def _fitted(table_: Sheet, width: int) -> Sheet:
    """A table without the columns for which there is no room."""
    while table_.optional and _width(table_) > width:
        table_ = table_.without(table_.optional[0])
    return table_


def _width(table_: Sheet) -> int:
    """Cells that a table needs: names are folded, headings are broken between words."""
    first, *others = _widths(table_)
    # Three cells lie between two columns, and one at each end.
    return 2 + sum(others) + 3 * len(others) + min(first, _LABEL_WIDTH)


def _widths(table_: Sheet) -> list[int]:
    """Cells that each column needs at least."""
    columns = zip(*table_.rows, *table_.feet, strict=True)
    widths = [max(map(cell_len, column)) for column in columns] or [0] * len(table_.head)
    words = (max(map(cell_len, name.split()), default=0) for name in table_.head)
    return list(map(max, widths, words))


def _render_spent(summary: RunSummary, console: Console) -> None:
    """Print where the time went, of a run that was put back or has used GPUs; the page has it of all runs."""
    if len(summary.starts) < 2 and not any(start.gpus for start in summary.starts):
        return
    console.print(time_line(summary.starts, console.width))
    console.print()
    times = time_sheet(summary)
    _print_noted(replace(times, rows=times.rows[-_STARTS:]), console)
    if summary.usage:
        _print_noted(_shortened(usage_sheet(summary), _RANKS), console)


def _print_noted(table_: Sheet, console: Console) -> None:
    console.print(sheet(_fitted(table_, console.width), console.width))
    console.print()


def _render_advice(advice: Sequence[Advice], console: Console) -> None:
    """Print what could be asked for differently, in lines: a terminal has no room for five columns."""
    if not advice:
        return
    grid = Table.grid(padding=(0, 2))
    grid.title, grid.title_justify = Text("Advice", style="bold"), "left"
    grid.add_column(no_wrap=True, style="bold yellow")
    grid.add_column(overflow="fold")
    for each in advice:
        grid.add_row(Text(each.topic), Text(f"{each.found} (bound: {each.bound})"))
        grid.add_row("", Text(each.change, style="bold"))
        grid.add_row("", Text(each.reason, style="dim"))
    console.print(grid)


def slice_tables(summary: RunSummary) -> Iterator[Table]:
    """Yield the slices of the last split that has them; before there is one, their newest accuracies."""
    if not summary.slices:
        if rows := slices.latest_rows(summary.scores):
            yield _plain("Slices (so far)", rows)
        return
    report = list(summary.slices.values())[-1]
    # What a terminal shows at last is what is seen: all mentions.
    for inside in reversed(report.views):
        table = _plain(f"Slices ({report.title(inside)})", slices.slice_rows(report, inside))
        if said := slices.note(report, inside):
            table.caption = Text(said, style="default")
        yield table


def _render_classes(summary: RunSummary, console: Console) -> None:
    """Print the last split that has scores of classes; the page has the others.

    Of two levels, fragments come first: what a terminal shows at last is what is seen.
    """
    splits = [report.view.split for report in summary.classes.values()]
    for name, report in reversed(summary.classes.items()):
        if report.view.split != splits[-1]:
            continue
        for table in class_tables(report, console):
            console.print(table)
        if name in summary.two_classes and report.view.level == "text":
            console.print(thresholds(summary.two_classes[name]))


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
    """Return the metrics of each split: a row for each metric, because there are many of them."""
    return _plain("Scores", facts.score_rows(summary))


def epochs(lines: Sequence[Sequence[str]]) -> Table:
    """Return loss and accuracy of each epoch; of many epochs, of the last ones."""
    head, *rows = lines
    table = _plain("Epochs", [head, *rows[-_EPOCHS:]], _EPOCH_HEADING_WIDTH)
    if len(rows) > _EPOCHS:
        table.caption = Text(f"the last {_EPOCHS} of {len(rows)} epochs")
    return table


def labels(title: str, names: Sequence[str], splits: Mapping[str, Sequence[int]]) -> Table:
    """Return how often each label is in each split; of many labels, the most frequent ones."""
    head, *rows, sums = facts.label_counts(names, splits)
    totals = [sum(counts) for counts in zip(*splits.values(), strict=True)]
    shown: Sequence[int] = range(len(rows))
    if len(rows) > _LABELS:
        shown = sorted(shown, key=lambda position: -totals[position])[:_LABELS]
    table = _plain(title, [head, *(rows[position] for position in shown)])
    table.add_section()
    table.add_row(*(Text(cell, style="bold") for cell in sums))
    if len(rows) > _LABELS:
        table.caption = Text(f"the {_LABELS} most frequent of {len(rows)} labels")
    return table


def sheet(table_: Sheet, width: int | None = None) -> Table:
    """Return a table of cells as they are, the best ones in bold.

    width  that it was fitted into, if it was: then headings are broken, and numbers never
    """
    table = titled(table_.title)
    is_tight = width is not None and bool(table_.optional) and _width(table_) + _LABEL_WIDTH > width
    least = _widths(table_)
    for column, name in enumerate(table_.head):
        justify: Literal["left", "right"] = "left" if column < table_.texts else "right"
        fixed = least[column] if is_tight and column else None
        table.add_column(Text(name), justify=justify, overflow="fold", width=fixed)
    for row, cells in enumerate(table_.rows):
        if row in table_.sections:
            table.add_section()
        styles = (
            "bold green" if (row, column) in table_.best else _STATE_STYLES.get(cell, "")
            for column, cell in enumerate(cells)
        )
        table.add_row(*map(Text, cells, styles))
    table.add_section()
    for cells in table_.feet:
        table.add_row(*(Text(cell, style="bold") for cell in cells))
    if table_.note:
        table.caption = Text(table_.note, style="dim")
    return table


def _plain(title: str, rows: Sequence[Sequence[str]], heading_width: int = _LABEL_WIDTH) -> Table:
    """Return rows below their header; the first column is text, the others numbers."""
    table = titled(title)
    table.add_column(Text(rows[0][0]), overflow="fold")
    for name in rows[0][1:]:
        table.add_column(Text(formats.one_line(name, heading_width)), justify="right")
    for first, *numbers in rows[1:]:
        table.add_row(Text(formats.one_line(first, _LABEL_WIDTH)), *(Text(number) for number in numbers))
    return table
