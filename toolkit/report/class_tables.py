"""Scores of classes as tables for a terminal: per class, confusion matrices, thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from toolkit.report import facts, formats
from toolkit.report.values import ClassReport, TwoClassCurves

_FAINT_RGB = (118, 126, 134)
_DEEP_RGB = (0, 114, 178)
_LABEL_WIDTH = 24
_HEAD_WIDTH = 12
_NUMBERED_WIDTH = 14
_CONFUSIONS = 10
_CLASSES = 40
_SCORES = ("precision", "recall", "f1")
_AREAS = ("average_precision", "roc_auc")

#: What a cell of a confusion matrix shows, of its count and its share of the true class.
_Cell = Callable[[int, float | None], str]


def titled(title: str) -> Table:
    """Return a table in the report's dress, still without columns."""
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )


def class_tables(report: ClassReport, console: Console) -> Iterator[RenderableType]:
    """Yield the tables of one view: scores, and the confusion matrix as counts and as shares."""
    scores = classes(report, with_areas=True)
    # The page has the areas where a terminal has no room for them.
    yield scores if _fits(scores, console) else classes(report, with_areas=False)
    title = report.view.title
    drawn = (
        confusion(f"Confusion ({title})", report, console, _counted),
        confusion(f"Confusion, % ({title})", report, console, _in_per_cent),
    )
    fitting = [matrix for matrix in drawn if matrix is not None]
    yield from fitting or [confusions(report)]


def classes(report: ClassReport, with_areas: bool) -> Table:
    """Return precision, recall, F1 and support of each class, with the averages below.

    with_areas: also average precision (AP) and the area under the ROC curve, where they are known.
    """
    table = titled(f"Classes ({report.view.title})")
    known = [name for name in _AREAS if any(getattr(row, name) is not None for row in report.classes)]
    areas = known if with_areas else []
    table.add_column("class", overflow="fold")
    for name in (*_SCORES, *areas):
        title = {"average_precision": "AP"}.get(name, formats.metric_title(name))
        table.add_column(title, justify="right", no_wrap=name in _SCORES)
    table.add_column("support", justify="right", no_wrap=True)
    caption = facts.class_facts(report)
    shown = report.classes
    if len(shown) > _CLASSES:
        shown = tuple(sorted(shown, key=lambda row: row.f1)[:_CLASSES])
        caption = f"the {_CLASSES} lowest F1 of {len(report.classes)} classes\n{caption}"
    for row in shown:
        values = (formats.score(name, getattr(row, name)) for name in (*_SCORES, *areas))
        label = Text(formats.one_line(row.label, 2 * _LABEL_WIDTH))
        table.add_row(label, *values, formats.count(row.support))
    table.add_section()
    for average, scores in facts.averages(report):
        values = (formats.score(name, value) for name, value in zip(_SCORES, scores, strict=True))
        blank = ("" for _ in areas)
        table.add_row(average, *values, *blank, formats.count(report.samples), style="bold")
    table.caption = Text(caption, style="default")
    return table


def confusion(title: str, report: ClassReport, console: Console, cell: _Cell) -> Table | None:
    """Return the confusion matrix: a row for each true class, shaded by its share of the row.

    Where the labels are too wide as heads of columns, numbers stand there; None where even that is.
    """
    drawn = (_matrix(title, report, numbered, cell) for numbered in (False, True))
    return next((matrix for matrix in drawn if _fits(matrix, console)), None)


def confusions(report: ClassReport) -> Table:
    """Return the most frequent mistakes, for a matrix that is too wide."""
    table = titled(f"Most frequent confusions ({report.view.title})")
    table.add_column("true", overflow="fold")
    table.add_column("predicted", overflow="fold")
    table.add_column("samples", justify="right")
    for true, predicted, samples in report.confusions(_CONFUSIONS):
        labels = (Text(formats.one_line(label, _LABEL_WIDTH)) for label in (true, predicted))
        table.add_row(*labels, formats.count(samples))
    return table


def thresholds(curves: TwoClassCurves) -> Table:
    """Return what thresholds on the probability of the positive class would give."""
    table = titled(f"Thresholds on P({formats.one_line(curves.positive, _LABEL_WIDTH)}), {curves.view.title}")
    head, *rows = facts.operating_points(curves)
    for name in head:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    table.caption = Text(facts.curve_facts(curves), style="default")
    return table


def _fits(table: Table, console: Console) -> bool:
    needed = Measurement.get(console, console.options.update(width=10_000), table).maximum
    return needed <= console.width


def _matrix(title: str, report: ClassReport, numbered: bool, cell: _Cell) -> Table:
    table = titled(title)
    # The numbers must fit into 80 columns for a dozen classes.
    table.padding = (0, 0) if numbered else (0, 1)
    table.add_column("true ╲ predicted" if not numbered else "true ╲", no_wrap=True)
    if numbered:
        table.add_column("", justify="right", style="dim", no_wrap=True)
    for number, label in enumerate(report.labels, start=1):
        head = str(number) if numbered else formats.one_line(label, _HEAD_WIDTH)
        table.add_column(Text(head), justify="right", no_wrap=True)
    for position, label in enumerate(report.labels):
        row = zip(report.confusion[position], report.shares[position], strict=True)
        cells = [
            _shaded(cell(value, share), share, position == column)
            for column, (value, share) in enumerate(row)
        ]
        number_cell = [str(position + 1)] if numbered else []
        table.add_row(
            Text(formats.one_line(label, _NUMBERED_WIDTH if numbered else _LABEL_WIDTH)), *number_cell, *cells
        )
    return table


def _counted(value: int, share: float | None) -> str:
    return formats.count(value)


def _in_per_cent(value: int, share: float | None) -> str:
    return formats.decimal(None if share is None else 100 * share, 1)


def _shaded(text: str, share: float | None, diagonal: bool) -> Text:
    """Shade a cell by its share of the row, from grey to blue.

    White on a middle tone, and no shade for next to nothing: it must look right on a light terminal
    and on a dark one, and nobody can tell which it is.
    """
    weight = "bold " if diagonal else ""
    if share is None or share < 0.02:
        return Text(text, style="bold" if diagonal else "dim")
    depth = share**formats.SHADE_POWER
    red, green, blue = (
        round(low + (high - low) * depth) for low, high in zip(_FAINT_RGB, _DEEP_RGB, strict=True)
    )
    return Text(text, style=f"{weight}#ffffff on rgb({red},{green},{blue})")
