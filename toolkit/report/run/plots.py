"""Plots of a run's metrics over steps and epochs, as PNG.

Importing matplotlib takes longer than anything else here, so import this module only to draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from toolkit.report import formats
from toolkit.report.model import RunSummary, shared_metric, shared_title
from toolkit.report.plotting.figures import legend_above, one_panel, panel_grid, png
from toolkit.report.plotting.themes import Theme

_RESTARTS_DRAWN = 40
_POINTS_MARKED = 60


def metric_plot(summary: RunSummary, metric: str, theme: Theme) -> bytes:
    """Draw one metric of all splits over the steps; mark the best evaluation and the restarts."""
    title = f"{formats.capitalized(summary.title(metric))} · {summary.run_id}"
    with one_panel(theme, title, title_pad=26) as (figure, axes):
        for position, split in enumerate(summary.curves):
            steps, values = summary.points(split, metric)
            if split == "test" or not steps:
                continue  # the test set is scored once, at the end: a point, drawn below
            _curve(axes, split, steps, values, theme.series[position % len(theme.series)])
        _test_point(axes, summary, metric, theme)
        _best_mark(axes, summary, metric, theme)
        _restarts(axes, summary, theme)
        label_axes(axes, metric, [summary])
        legend_above(axes)
        return png(figure)


def epochs_plot(summary: RunSummary, metrics: Sequence[str], theme: Theme) -> bytes:
    """Draw two metrics by epoch, of training and of validation, in two panels."""
    with panel_grid(theme, f"By epoch · {summary.run_id}", 1, 2) as (figure, panels):
        for axes, metric in zip(panels, metrics, strict=True):
            splits = [(epoch.training, epoch.validation) for epoch in summary.by_epoch]
            for position, split in enumerate(("training", "validation")):
                values = [scores[position].get(metric, math.nan) for scores in splits]
                numbers = [epoch.epoch for epoch in summary.by_epoch]
                marker = "o" if len(values) <= _POINTS_MARKED else None
                axes.plot(numbers, values, color=theme.series[position], marker=marker, label=split)
            _value_axis(axes, metric, [summary])
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
            axes.legend(loc="best")
        return png(figure)


def learning_rate_plot(summary: RunSummary, theme: Theme) -> bytes:
    """Draw the learning rate over the steps."""
    with one_panel(theme, f"Learning rate · {summary.run_id}", height=2.8) as (figure, axes):
        axes.plot(*summary.points("train", "lr"), color=theme.series[0])
        axes.set_ylim(bottom=0)
        label_axes(axes, "lr", [summary])
        return png(figure)


def _curve(axes: Axes, split: str, steps: list[float], values: list[float], colour: str) -> None:
    few = len(steps) <= _POINTS_MARKED and split != "train"
    axes.plot(
        steps,
        values,
        color=colour,
        label=split,
        linewidth=1.2 if split == "train" else 2.0,
        marker="o" if few or len(steps) == 1 else None,
        markersize=4,
    )


def _test_point(axes: Axes, summary: RunSummary, metric: str, theme: Theme) -> None:
    value = summary.scores.get("test", {}).get(metric)
    if value is None or not math.isfinite(value):
        return
    label = f"test {summary.score(metric, value)}"
    axes.axhline(value, color=theme.series[2], linewidth=1.2, linestyle=(0, (6, 3)), label=label)


def _best_mark(axes: Axes, summary: RunSummary, metric: str, theme: Theme) -> None:
    steps, values = summary.points("validation", metric)
    if summary.best is None or summary.best.step not in steps:
        return
    value = values[steps.index(summary.best.step)]
    label = f"best, step {formats.count(summary.best.step)}: {summary.score(metric, value)}"
    axes.plot(
        [summary.best.step],
        [value],
        linestyle="none",
        marker="*",
        markersize=14,
        color=theme.series[4],
        markeredgecolor=theme.ink,
        markeredgewidth=0.8,
        label=label,
        zorder=5,
    )


def _restarts(axes: Axes, summary: RunSummary, theme: Theme) -> None:
    steps = sorted({attempt.first_step for attempt in summary.attempts[1:] if attempt.first_step})
    for position, step in enumerate(steps[:_RESTARTS_DRAWN]):
        label = f"restart ({len(steps)})" if position == 0 else None
        axes.axvline(step, color=theme.quiet, linewidth=1.0, linestyle=":", label=label, zorder=0)


def label_axes(axes: Axes, metric: str, summaries: Sequence[RunSummary]) -> None:
    """Label the axes for steps and values of a metric; for a single run, with the length of its epochs."""
    first, length = summaries[0], ""
    if len(summaries) == 1 and first.step and first.epoch:
        length = f"; 1 epoch = {formats.count(round(first.step / first.epoch))}"
    axes.set_xlabel(f"step (optimizer updates{length})")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.count(value)))
    _value_axis(axes, metric, summaries)


def _value_axis(axes: Axes, metric: str, summaries: Sequence[RunSummary]) -> None:
    title = shared_title(summaries, metric)
    if formats.is_share(shared_metric(summaries, metric)):
        axes.set_ylabel(f"{title} (%)")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}"))
    else:
        unit = {"loss": " (mean)", "lr": ""}.get(metric, "")
        axes.set_ylabel(("learning rate" if metric == "lr" else title) + unit)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
