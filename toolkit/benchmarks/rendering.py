"""Tables of results for a terminal, for Markdown and for LaTeX, the best of each column in bold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from toolkit.benchmarks.kinds import KINDS
from toolkit.benchmarks.tables import Cell, Table
from toolkit.report.formats import NOTHING, clean, one_line

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_|<>[]"})


def terminal(table: Table) -> RenderableType:
    """Return a table for a terminal of any width."""
    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("model", overflow="fold")
    for column in table.columns:
        # Group above split: there may be many columns.
        made.add_column(Text(_name(column).replace("/", "\n", 1)), justify="right", overflow="fold")
    for model, cells in table.rows:
        numbers = (Text(cell.text or NOTHING, style="bold green" if cell.is_best else "") for cell in cells)
        made.add_row(Text(_name(model)), *numbers)
    # A title of the table's own would be folded to its width.
    return Group(Text(table.title, style="bold"), made)


def markdown(tables: Iterable[Table]) -> str:
    """Return the tables as a document, a heading above each."""
    return "\n".join(_markdown(table) for table in tables)


def _markdown(table: Table) -> str:
    lines = [["model", *map(_in_markdown, table.columns)], ["---", *["---:"] * len(table.columns)]]
    for model, cells in table.rows:
        lines.append([_in_markdown(model), *(_bold(cell, "**{}**") for cell in cells)])
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {table.title.translate(_MARKDOWN)}\n\n{rows}\n"


def latex(tables: Iterable[Table]) -> str:
    """Return the tables for inclusion in a document that uses the package booktabs."""
    return "\n".join(_latex(table) for table in tables)


def _latex(table: Table) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{table.title.translate(_LATEX)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["model", *map(_in_latex, table.columns)]) + r" \\",
        r"\midrule",
    ]
    for model, cells in table.rows:
        lines.append(
            " & ".join([_in_latex(model), *(_bold(cell, r"\textbf{{{}}}") for cell in cells)]) + r" \\"
        )
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _bold(cell: Cell, form: str) -> str:
    return form.format(cell.text) if cell.is_best else cell.text or NOTHING


def _in_markdown(text: str) -> str:
    return _name(text).translate(_MARKDOWN)


def _in_latex(text: str) -> str:
    return _name(text).translate(_LATEX)


def _name(text: str) -> str:
    return one_line(str(clean(text)), 60)


def figure_lines(kind: str, figures: Mapping[str, float]) -> list[str]:
    """Return a line for each metric of a single prediction; precision and recall stand behind F1."""
    shown = {
        metric.name: metric.shown(figures[metric.name]) + ("%" if metric.is_share else "")
        for metric in KINDS[kind]
        if metric.name in figures
    }
    precision, recall = shown.pop("precision"), shown.pop("recall")
    lines = [f"{metric.title}: {shown[metric.name]}" for metric in KINDS[kind] if metric.name in shown]
    lines[0] = f"{lines[0].removesuffix('%')} (Precision: {precision}, Recall: {recall})"
    return lines
