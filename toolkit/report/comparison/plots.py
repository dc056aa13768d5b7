"""Plots with several runs in one panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from toolkit.report import formats
from toolkit.report.comparison.groups import Group, band
from toolkit.report.model import RunSummary, shared_title
from toolkit.report.plotting.figures import one_panel, png
from toolkit.report.plotting.themes import Theme
from toolkit.report.run.plots import label_axes

_LINE_STYLES = ("-", "--", "-.", ":")
_POINTS_MARKED = 60
#: More names than this do not fit beside the axes.
_NAMED = 20
_NAME_WIDTH = 32


def overlay_plot(summaries: Sequence[RunSummary], split: str, metric: str, theme: Theme) -> bytes:
    """Draw one metric of a split for several runs; line styles change when all colours are used."""
    title = f"{split.capitalize()} {shared_title(summaries, metric)}"
    with one_panel(theme, title, width=9.5) as (figure, axes):
        for position, summary in enumerate(summaries):
            steps, values = summary.points(split, metric)
            if steps:
                style = _style(position, theme)
                marker = "o" if split != "train" and len(steps) <= _POINTS_MARKED else None
                label = _name(summary.run_id, position)
                axes.plot(steps, values, **style, label=label, marker=marker, markersize=3.5, linewidth=1.5)
        label_axes(axes, metric, summaries)
        _legend_beside(axes)
        return png(figure)


def seeds_plot(found: Sequence[Group], metric: str, theme: Theme) -> bytes:
    """Draw the mean over the seeds of each setting, and its deviation as a band."""
    runs = [run for group in found for run in group.runs]
    title = f"Validation {shared_title(runs, metric)}: mean ± deviation over seeds"
    with one_panel(theme, title, width=9.5) as (figure, axes):
        for position, group in enumerate(found):
            spreads = band(group, metric)
            steps = list(spreads)
            means = [each.mean for each in spreads.values()]
            low = [each.mean - (each.deviation or 0.0) for each in spreads.values()]
            high = [each.mean + (each.deviation or 0.0) for each in spreads.values()]
            style = _style(position, theme)
            count = max(each.runs for each in spreads.values())
            label = _name(f"{group.label} (n = {count})", position)
            marker = "o" if len(steps) <= _POINTS_MARKED else None
            axes.plot(steps, means, **style, label=label, linewidth=2, marker=marker, markersize=3.5)
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.22, linewidth=0)
        label_axes(axes, metric, runs)
        _legend_beside(axes)
        return png(figure)


def _style(position: int, theme: Theme) -> dict[str, Any]:
    line = _LINE_STYLES[position // len(theme.series) % len(_LINE_STYLES)]
    return {"color": theme.series[position % len(theme.series)], "linestyle": line}


def _name(text: str, position: int) -> str | None:
    """A name for the legend; a long one is cut in the middle, because runs differ at both ends."""
    if position >= _NAMED:
        return None
    flat = formats.one_line(text, len(text) + 1)
    half = _NAME_WIDTH // 2
    return flat if len(flat) <= _NAME_WIDTH else f"{flat[: half - 1]}…{flat[-half:]}"


def _legend_beside(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, fontsize=8)
