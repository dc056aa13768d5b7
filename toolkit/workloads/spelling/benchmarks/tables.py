"""Tables of results: models in rows, benchmarks in columns, one table for each metric of each kind.

They are shown on a terminal and written for LaTeX, with the best value of each column in bold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from toolkit.report import blocks
from toolkit.report.blocks import Table
from toolkit.report.formats import NOTHING, clean, one_line
from toolkit.workload import Metric
from toolkit.workloads.spelling.benchmarks.kinds import HEADLINES, KINDS, TITLES, shown
from toolkit.workloads.spelling.benchmarks.scoring import Result


def tables(results: Sequence[Result], *, headlines: bool = False) -> Iterator[tuple[Metric, Table]]:
    """Yield each metric with its table, kind by kind; metrics without results are left out.

    headlines  only the metrics in HEADLINES
    """
    for kind, metrics in KINDS.items():
        for metric in metrics:
            found = [each for each in results if each.benchmark.kind == kind and metric.name in each.figures]
            if found and (metric.name in HEADLINES[kind] or not headlines):
                yield metric, _table(kind, metric, found)


def _table(kind: str, metric: Metric, results: Sequence[Result]) -> Table:
    columns = list(dict.fromkeys(result.benchmark.title for result in results))
    models = list(dict.fromkeys(result.model for result in results))
    values = {(result.model, result.benchmark.title): result.figures[metric.name] for result in results}
    cells = {place: shown(metric, value) for place, value in values.items()}
    best = {column: _best(metric, [value for (_, of), value in values.items() if of == column])
            for column in columns}  # fmt: skip
    unit = ", %" if metric.unit == "share" else ", lower is better" if metric.goal == "min" else ""
    return blocks.table(
        f"{TITLES[kind]} ({kind}): {metric.title}{unit}",
        ["model", *map(_name, columns)],
        [[_name(model), *(cells.get((model, column), NOTHING) for column in columns)] for model in models],
        best=frozenset(
            (models.index(model), columns.index(column) + 1)
            for (model, column), cell in cells.items()
            if cell == best[column]
        ),
    )


def _best(metric: Metric, values: Sequence[float]) -> str | None:
    """Return the best of several values as it is shown, so that values that look equal are equally good."""
    if len(values) < 2:
        return None
    return shown(metric, min(values) if metric.goal == "min" else max(values))


def _name(text: str) -> str:
    return one_line(str(clean(text)), 60)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


def terminal(table: Table) -> RenderableType:
    """Return a table for a terminal of any width."""
    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column(table.head[0], overflow="fold")
    for column in table.head[1:]:
        # The group is above the split, because there may be many columns.
        made.add_column(Text(column.replace("/", "\n", 1)), justify="right", overflow="fold")
    for row, cells in enumerate(table.rows):
        styles = ("bold green" if (row, column) in table.best else "" for column in range(len(cells)))
        made.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
    # rich would wrap the table's own title to the width of the table.
    return Group(Text(table.title, style="bold"), made)


def latex(table: Table) -> str:
    """Return a table for inclusion in a document that uses the package booktabs."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{table.title.translate(_LATEX)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.head) - 1)}}}",
        r"\toprule",
        " & ".join(cell.translate(_LATEX) for cell in table.head) + r" \\",
        r"\midrule",
    ]
    for number, row in enumerate(table.rows):
        cells = [cell.translate(_LATEX) for cell in row]
        for column in (column for line, column in table.best if line == number):
            cells[column] = rf"\textbf{{{cells[column]}}}"
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def figure_lines(kind: str, figures: Mapping[str, float]) -> list[str]:
    """Return one line per metric of a single prediction; the line of F1 also has precision and recall."""
    values = {
        metric.name: shown(metric, figures[metric.name]) + (" %" if metric.unit == "share" else "")
        for metric in KINDS[kind]
        if metric.name in figures
    }
    precision, recall = values.pop("precision"), values.pop("recall")
    lines = [f"{metric.title}: {values[metric.name]}" for metric in KINDS[kind] if metric.name in values]
    lines[0] = f"{lines[0].removesuffix(' %')} (Precision: {precision}, Recall: {recall})"
    return lines
