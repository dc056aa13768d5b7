"""Which plots a run has, and those of metrics over steps and epochs: PNG, in a light and a dark dress.

Only this module and those that it draws with import matplotlib and numpy; import it where a plot is
wanted, for that takes longer than everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from toolkit.report import formats
from toolkit.report.canvas import legend_above, one_panel, png, two_panels
from toolkit.report.class_plots import confusion_plot, curves_plot, labels_plot
from toolkit.report.slice_plots import has_slice_curves, slices_over_time_plot, slices_plot
from toolkit.report.spent.timeline_plot import timeline_plot
from toolkit.report.spent.usage_plot import has_history, usage_plot
from toolkit.report.themes import Theme
from toolkit.report.values import ACCURACIES, RunSummary, main_metric

_RESTARTS_DRAWN = 40
_POINTS_MARKED = 60


Plot = Callable[[Theme], bytes]


def run_plots(summary: RunSummary) -> dict[str, Plot]:
    """Return by file name the plots that this run has data for; each is drawn when it is called."""
    plots: dict[str, Plot] = {}
    for metric in ("loss", main_metric(summary)):
        if metric is not None and any(summary.points(split, metric)[0] for split in summary.curves):
            plots[_picture_name(metric)] = partial(metric_plot, summary, metric)
    if summary.points("train", "lr")[0]:
        plots["learning_rate.png"] = partial(learning_rate_plot, summary)
    if _accuracies_drawn(summary):
        plots["epochs.png"] = partial(epochs_plot, summary)
    if summary.labels and any(map(any, summary.labels.texts.values())):
        plots["labels.png"] = partial(labels_plot, summary.run_id, summary.labels)
    for name, report in summary.classes.items():
        plots[_picture_name(f"confusion_{name}")] = partial(confusion_plot, summary.run_id, report)
    for split in dict.fromkeys(curves.view.split for curves in summary.two_classes.values()):
        levels = [curves for curves in summary.two_classes.values() if curves.view.split == split]
        classes = [
            summary.classes[curves.view.name] for curves in levels if curves.view.name in summary.classes
        ]
        plots[_picture_name(f"curves_{split}")] = partial(curves_plot, summary.run_id, levels, classes)
    if summary.slices:
        plots["slices.png"] = partial(slices_plot, summary.run_id, list(summary.slices.values())[-1])
    if has_slice_curves(summary):
        plots["slices_over_time.png"] = partial(slices_over_time_plot, summary)
    if summary.starts:
        plots["timeline.png"] = partial(timeline_plot, summary)
    if has_history(summary):
        plots["usage.png"] = partial(usage_plot, summary)
    return plots


def metric_plot(summary: RunSummary, metric: str, theme: Theme) -> bytes:
    """Draw one metric of all splits over the steps; mark the best evaluation and the restarts."""
    title = f"{_capitalized(formats.metric_title(metric))} · {summary.run_id}"
    with one_panel(theme, title, title_pad=26) as (figure, axes):
        for position, split in enumerate(summary.curves):
            steps, values = summary.points(split, metric)
            if split == "test" or not steps:
                continue  # the test set is scored once, at the end: a point, drawn below
            _curve(axes, split, steps, values, theme.series[position % len(theme.series)])
        _test_point(axes, summary, metric, theme)
        _best_mark(axes, summary, metric, theme)
        _restarts(axes, summary, theme)
        label_axes(axes, metric, summary)
        legend_above(axes)
        return png(figure)


def epochs_plot(summary: RunSummary, theme: Theme) -> bytes:
    """Draw loss and an accuracy by epoch, of training and of validation, in two panels."""
    metrics = ("loss", *_accuracies_drawn(summary)[:1])
    with two_panels(theme, f"By epoch · {summary.run_id}") as (figure, *panels):
        for axes, metric in zip(panels, metrics, strict=True):
            splits = [(epoch.training, epoch.validation) for epoch in summary.by_epoch]
            for position, split in enumerate(("training", "validation")):
                values = [scores[position].get(metric, math.nan) for scores in splits]
                numbers = [epoch.epoch for epoch in summary.by_epoch]
                marker = "o" if len(values) <= _POINTS_MARKED else None
                axes.plot(numbers, values, color=theme.series[position], marker=marker, label=split)
            _value_axis(axes, metric)
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
            axes.legend(loc="best")
        return png(figure)


def _accuracies_drawn(summary: RunSummary) -> list[str]:
    """Accuracies that training and validation have beside their losses."""
    known = [{*epoch.training} & {*epoch.validation} for epoch in summary.by_epoch]
    return [name for name in ACCURACIES if any({"loss", name} <= names for names in known)]


def learning_rate_plot(summary: RunSummary, theme: Theme) -> bytes:
    """Draw the learning rate over the steps."""
    with one_panel(theme, f"Learning rate · {summary.run_id}", height=2.8) as (figure, axes):
        axes.plot(*summary.points("train", "lr"), color=theme.series[0])
        axes.set_ylim(bottom=0)
        label_axes(axes, "lr", summary)
        return png(figure)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _picture_name(stem: str) -> str:
    return formats.file_name(stem) + ".png"


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
    label = f"test {formats.score(metric, value)}"
    axes.axhline(value, color=theme.series[2], linewidth=1.2, linestyle=(0, (6, 3)), label=label)


def _best_mark(axes: Axes, summary: RunSummary, metric: str, theme: Theme) -> None:
    steps, values = summary.points("validation", metric)
    if summary.best is None or summary.best.step not in steps:
        return
    value = values[steps.index(summary.best.step)]
    label = f"best, step {formats.count(summary.best.step)}: {formats.score(metric, value)}"
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


def label_axes(axes: Axes, metric: str, summary: RunSummary | None) -> None:
    """Name the steps and the values of a metric; of one run, say how long its epochs are."""
    axes.set_xlabel("step (optimizer updates" + _epoch_length(summary) + ")")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.count(value)))
    _value_axis(axes, metric)


def _value_axis(axes: Axes, metric: str) -> None:
    if formats.is_share(metric):
        axes.set_ylabel(f"{formats.metric_title(metric)} (%)")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}"))
    else:
        unit = {"loss": " (mean)", "lr": ""}.get(metric, "")
        axes.set_ylabel(("learning rate" if metric == "lr" else formats.metric_title(metric)) + unit)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _epoch_length(summary: RunSummary | None) -> str:
    if summary is None or not summary.step or not summary.epoch:
        return ""
    return f"; 1 epoch = {formats.count(round(summary.step / summary.epoch))}"
