"""A run, or several side by side, as tables for a terminal of any width, with or without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from toolkit.report import facts, formats, slices
from toolkit.report.class_tables import class_tables, thresholds, titled
from toolkit.report.values import RunSummary, config_differences

_STATE_STYLES = {"finished": "bold green", "failed": "bold red", "unfinished": "bold yellow"}
#: A split and a metric, which a narrow terminal sets in lines.
_EPOCH_HEADING_WIDTH = 32
_LABEL_WIDTH = 24
_LABELS = 40
_EPOCHS = 20


def render(summaries: Sequence[RunSummary], console: Console) -> None:
    """Print one run in full, or a comparison of several."""
    if len(summaries) != 1:
        console.print(comparison(summaries))
        if rows := facts.slice_comparison(summaries):
            console.print(_plain(f"Slices ({facts.compared_split(summaries)} accuracy)", rows))
        if differences := config_differences(summaries):
            console.print(_differences(summaries, differences))
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


def comparison(summaries: Sequence[RunSummary]) -> Table:
    """Return one row for each run with the metrics that matter most."""
    rows = facts.comparison(summaries)
    table = titled("Runs")
    table.add_column(Text(rows[0][0]), overflow="fold", ratio=1)
    for name in rows[0][1:]:
        table.add_column(Text(name), justify="left" if name == "state" else "right")
    for cells in rows[1:]:
        table.add_row(*(Text(cell, style=_STATE_STYLES.get(cell, "")) for cell in cells))
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


def _differences(summaries: Sequence[RunSummary], differences: dict[str, tuple[object, ...]]) -> Table:
    table = titled("What differs")
    table.add_column("key", overflow="fold")
    for summary in summaries:
        table.add_column(Text(summary.run_id), justify="right", overflow="fold")
    for key, values in differences.items():
        table.add_row(Text(key), *(Text(facts.setting(value)) for value in values))
    return table
