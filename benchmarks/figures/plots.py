"""A table as a picture: medians as bars with their quartiles. Imports matplotlib."""

from __future__ import annotations

from itertools import groupby

from benchmarks.figures.tables import Spread, Table
from toolkit.report.plotting.figures import one_panel, png
from toolkit.report.plotting.themes import LIGHT, Theme

#: Height of a bar with its margin, in inches.
_BAR = 0.27


def bars(table: Table, theme: Theme = LIGHT) -> bytes:
    """Draw the rows that have values, by work, with stk's bars in colour; return a PNG."""
    rows = [row for row in table.rows if row.values]
    works = [(work, list(group)) for work, group in groupby(rows, key=lambda row: row.work)]
    height = 1.3 + _BAR * (len(rows) + 1.5 * len(works))
    with one_panel(theme, table.title, height=height) as (figure, axes):
        place, names = 0.0, {}
        for work, group in works:
            place += 1.5
            names[place - 1.0] = work
            for row in group:
                spread = Spread.of(row.values)
                sides = [[spread.median - spread.low], [spread.high - spread.median]]
                colour = theme.series[0] if row.candidate.startswith("stk ") else theme.quiet
                axes.barh(place, spread.median, height=0.72, color=colour)
                axes.errorbar(spread.median, place, xerr=sides, color=theme.ink, capsize=3, linewidth=1)
                names[place] = row.candidate
                place += 1.0
        axes.set_yticks(list(names), list(names.values()))
        for label in axes.get_yticklabels():
            if label.get_text() in {work for work, _ in works}:
                label.set_fontweight("bold")
        axes.tick_params(axis="y", length=0)
        axes.grid(False, axis="y")
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{table.unit}, median with quartiles; {table.better} is better")
        return png(figure)
