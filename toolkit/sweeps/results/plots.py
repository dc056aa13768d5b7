"""Plots of the finished runs of a sweep: parallel coordinates, and the metric over each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from toolkit.report.formats import one_line
from toolkit.report.plotting.figures import many_panels, one_panel, png
from toolkit.report.plotting.themes import Theme
from toolkit.sweeps.results.axes import Axis, of_numbers
from toolkit.sweeps.results.collect import Results

#: Number of axes that fit beside each other.
_MOST_AXES = 9


def _goodness(results: Results) -> list[float]:
    """The value of each ranked run, scaled to between 0 (worst) and 1 (best)."""
    values = [row.value or 0.0 for row in results.ranked]
    low, high = min(values), max(values)
    shares = [0.5 if high == low else (value - low) / (high - low) for value in values]
    return shares if results.goal == "max" else [1 - share for share in shares]


def parallel_plot(results: Results, keys: Sequence[Axis], theme: Theme) -> bytes:
    """Draw an axis for each key and the metric, and a line for each run."""
    metric = of_numbers(results.metric_name, [row.value for row in results.ranked])
    axes = [*keys[: _MOST_AXES - 1], metric]
    # Stronger colours for better runs, readable on the theme's background.
    shades = [theme.grid, theme.quiet, theme.series[0], theme.series[1]]
    goodness, colours = _goodness(results), LinearSegmentedColormap.from_list("sweep", shades)
    title = f"{results.name}: a line for each run, the best one in front"
    with one_panel(theme, title, height=4.4) as (figure, panel):
        panel.grid(False)
        for place in range(len(axes)):
            panel.axvline(place, color=theme.quiet, linewidth=1, zorder=1)
        # The best last, so that it is drawn above the others.
        for number in reversed(range(len(results.ranked))):
            places = [(at, each.places[number]) for at, each in enumerate(axes)]
            known = [(at, axes[at].share(place)) for at, place in places if place is not None]
            is_best = number == 0
            panel.plot(
                [at for at, _ in known],
                [share for _, share in known],
                color=theme.series[1] if is_best else colours(0.15 + 0.6 * goodness[number]),
                linewidth=2.6 if is_best else 1.1,
                alpha=1.0 if is_best else 0.75,
                zorder=3 if is_best else 2,
            )
        _label(panel, axes, theme, results)
        return png(figure)


def _label(panel: Axes, axes: Sequence[Axis], theme: Theme, results: Results) -> None:
    """Titles below, and the ticks of each axis beside it."""
    panel.set_xlim(-0.15, len(axes) - 1 + 0.45)
    panel.set_ylim(-0.06, 1.06)
    panel.set_yticks([])
    panel.spines[:].set_visible(False)
    width = max(10, 96 // len(axes))
    panel.set_xticks(range(len(axes)), [one_line(each.title, width) for each in axes])
    panel.tick_params(axis="x", length=0, labelcolor=theme.ink)
    box = {"facecolor": theme.background, "alpha": 0.75, "edgecolor": "none", "pad": 0.8}
    style: dict[str, Any] = {"fontsize": 8, "va": "center", "color": theme.ink, "bbox": box, "zorder": 4}
    for at, each in enumerate(axes):
        for place, label in each.ticks:
            text = results.score(place) if at == len(axes) - 1 else label
            panel.text(at + 0.025, each.share(place), text, **style)


def scatter_plot(results: Results, keys: Sequence[Axis], theme: Theme) -> bytes:
    """Draw the metric over each key."""
    values = [row.value or 0.0 for row in results.ranked]
    title = f"{results.name}: {results.metric} over each key"
    with many_panels(theme, title, len(keys), same_x=False) as (figure, panels):
        for panel, each in zip(panels, keys, strict=True):
            known = [(at, value) for at, value in zip(each.places, values, strict=True) if at is not None]
            places, heights = [at for at, _ in known], [value for _, value in known]
            panel.scatter(places, heights, s=14, color=theme.series[0], alpha=0.65, linewidths=0)
            if each.places[0] is not None:
                panel.scatter(each.places[0], values[0], s=52, color=theme.series[1], marker="*", zorder=3)
            panel.set_xlabel(one_line(each.title, 34), fontsize=8)
            _scale(panel, each)
        return png(figure)


def _scale(panel: Axes, each: Axis) -> None:
    if each.is_log:
        panel.set_xscale("log")
        # Plain numbers, because these plots do not render formulas.
        panel.xaxis.set_major_formatter(lambda place, _: f"{place:g}")
        panel.xaxis.set_minor_formatter(lambda place, _: "")
    if each.is_named or len({place for place in each.places if place is not None}) <= 6:
        width = max(4, 44 // max(1, len(each.ticks)))
        labels = [one_line(label, width) for _, label in each.ticks]
        panel.set_xticks([place for place, _ in each.ticks], labels)
    if each.is_named:
        panel.set_xlim(-0.5, len(each.ticks) - 0.5 if each.ticks else None)
