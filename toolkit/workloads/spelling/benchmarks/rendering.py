"""Tables of results for a terminal and for LaTeX, the best of each column in bold."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from toolkit.report.blocks import Table
from toolkit.workloads.spelling.benchmarks.kinds import KINDS, shown

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
        # Group above split: there may be many columns.
        made.add_column(Text(column.replace("/", "\n", 1)), justify="right", overflow="fold")
    for row, cells in enumerate(table.rows):
        styles = ("bold green" if (row, column) in table.best else "" for column in range(len(cells)))
        made.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
    # The table's own title would be wrapped to its width.
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
    """Return one line per metric of a single prediction; precision and recall follow F1 in its line."""
    values = {
        metric.name: shown(metric, figures[metric.name]) + ("%" if metric.unit == "share" else "")
        for metric in KINDS[kind]
        if metric.name in figures
    }
    precision, recall = values.pop("precision"), values.pop("recall")
    lines = [f"{metric.title}: {values[metric.name]}" for metric in KINDS[kind] if metric.name in values]
    lines[0] = f"{lines[0].removesuffix('%')} (Precision: {precision}, Recall: {recall})"
    return lines
