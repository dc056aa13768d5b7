"""Plot the accuracy and popularity of slices, and their accuracy over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from toolkit.report import formats
from toolkit.report.plotting.curves import Columns, points
from toolkit.report.plotting.figures import legend_above, many_panels, one_panel, png
from toolkit.report.plotting.themes import Theme
from toolkit.workloads.entity_disambiguation.report import slice_tables
from toolkit.workloads.entity_disambiguation.report.slice_tables import PREFIX, SliceReport

_SLICES = 40
_NAME_WIDTH = 26
_SPLIT = "validation"


def slices_plot(run_id: str, report: SliceReport, theme: Theme) -> bytes:
    """Draw accuracy and popularity of each slice with mentions, as bars."""
    known = [(name, *slice_tables.numbers(scores, False)) for name, scores in report.scores.items()]
    shown = [each for each in known if each[1]][:_SLICES]
    title = f"Slices, {report.split} · {run_id}"
    with one_panel(theme, title, height=1.5 + 0.42 * len(shown), title_pad=26) as (figure, axes):
        places = np.arange(len(shown))
        for position, label in enumerate(("model", "most popular candidate")):
            shares = [100 * (each[2 + position] or 0.0) for each in shown]
            # The baseline is grey.
            colour = theme.series[0] if position == 0 else theme.quiet
            bars = axes.barh(places + 0.4 * position - 0.2, shares, height=0.36, color=colour, label=label)
            axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8, color=theme.quiet)
        axes.set_yticks(places, [_label(name, mentions) for name, mentions, *_ in shown])
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlim(0, 108)
        axes.set_xticks(range(0, 101, 20))
        axes.set_xlabel("accuracy (%); in brackets the mentions")
        legend_above(axes)
        return png(figure)


def slices_over_time_plot(
    run_id: str, curves: Mapping[str, Columns], names: Sequence[str], report: SliceReport | None, theme: Theme
) -> bytes:
    """Draw the accuracy of each slice and of all mentions over the steps, one panel per slice.

    The dotted line is the popularity, if it is known.
    """
    names = names[:_SLICES]
    title = f"Slices over the steps, {_SPLIT} · {run_id}"
    with many_panels(theme, title, len(names)) as (figure, panels):
        for axes, name in zip(panels, names, strict=True):
            steps, values = points(curves, _SPLIT, "accuracy")
            axes.plot(steps, values, color=theme.quiet, linewidth=1, label=slice_tables.ALL)
            steps, values = points(curves, _SPLIT, PREFIX + name)
            marker = "o" if len(steps) <= 20 else None
            axes.plot(steps, values, color=theme.series[0], marker=marker, markersize=3, label="slice")
            if (popularity := _popularity(report, name)) is not None:
                axes.axhline(popularity, color=theme.series[1], linestyle=":", label="most popular")
            axes.set_title(formats.one_line(name, _NAME_WIDTH), fontsize=9, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.count(value)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}"))
        legend: dict[Any, Any] = {}
        for axes in panels:
            handles, labels = axes.get_legend_handles_labels()
            legend.update(zip(labels, handles, strict=True))
        figure.legend(list(legend.values()), list(legend), loc="outside lower right", ncols=3, fontsize=8)
        figure.supxlabel("step", fontsize=9)
        figure.supylabel("accuracy (%)", fontsize=9)
        return png(figure)


def _popularity(report: SliceReport | None, name: str) -> float | None:
    if report is None or name not in report.scores:
        return None
    return slice_tables.numbers(report.scores[name], False)[2]


def _label(name: str, mentions: int) -> str:
    return f"{formats.one_line(slice_tables.title(name), _NAME_WIDTH)}  ({formats.count(mentions)})"
