"""Curves and confusion matrices as PNG, in a light and a dark dress.

The only module of the report that imports matplotlib and numpy; import it where a plot is wanted, for
that takes longer than everything else. No pyplot: no window system, nothing left open.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from toolkit.report import formats
from toolkit.report.themes import LIGHT, Theme, settings
from toolkit.report.values import ClassReport, RunSummary, main_metric

_DPI = 150
_LABELLED_CLASSES = 40
_ANNOTATED_CLASSES = 16
_RESTARTS_DRAWN = 40
_POINTS_MARKED = 60
_LINE_STYLES = ("-", "--", "-.", ":")


Plot = Callable[[Theme], bytes]


def run_plots(summary: RunSummary) -> dict[str, Plot]:
    """Return by file name the plots that this run has data for; each is drawn when it is called."""
    plots: dict[str, Plot] = {}
    for metric in ("loss", main_metric(summary)):
        if metric is not None and any(summary.points(split, metric)[0] for split in summary.curves):
            plots[_file_name(metric)] = partial(metric_plot, summary, metric)
    if summary.points("train", "lr")[0]:
        plots["learning_rate.png"] = partial(learning_rate_plot, summary)
    for split, report in summary.classes.items():
        plots[_file_name(f"confusion_{split}")] = partial(confusion_plot, summary.run_id, split, report)
    return plots


def comparison_plots(summaries: Sequence[RunSummary]) -> dict[str, Plot]:
    """Return by metric the validation curves of several runs in one plot."""
    metrics = dict.fromkeys(["loss", *(main_metric(summary) for summary in summaries)])
    return {
        metric: partial(overlay_plot, summaries, metric)
        for metric in metrics
        if metric is not None and any(summary.points("validation", metric)[0] for summary in summaries)
    }


def metric_plot(summary: RunSummary, metric: str, theme: Theme) -> bytes:
    """Draw one metric of all splits over the steps; mark the best evaluation and the restarts."""
    title = f"{_capitalized(formats.metric_title(metric))} · {summary.run_id}"
    with _axes(theme, title, title_pad=26) as (figure, axes):
        for position, split in enumerate(summary.curves):
            steps, values = summary.points(split, metric)
            if split == "test" or not steps:
                continue  # the test set is scored once, at the end: a point, drawn below
            _curve(axes, split, steps, values, theme.series[position % len(theme.series)])
        _test_point(axes, summary, metric, theme)
        _best_mark(axes, summary, metric, theme)
        _restarts(axes, summary, theme)
        _label_axes(axes, metric, summary)
        _legend(axes)
        return _png(figure)


def learning_rate_plot(summary: RunSummary, theme: Theme) -> bytes:
    """Draw the learning rate over the steps."""
    with _axes(theme, f"Learning rate · {summary.run_id}", height=2.8) as (figure, axes):
        axes.plot(*summary.points("train", "lr"), color=theme.series[0])
        axes.set_ylim(bottom=0)
        _label_axes(axes, "lr", summary)
        return _png(figure)


def overlay_plot(summaries: Sequence[RunSummary], metric: str, theme: Theme) -> bytes:
    """Draw one metric of the validation set for several runs; line styles change when colours run out."""
    with _axes(theme, f"Validation {formats.metric_title(metric)}", width=9.5) as (figure, axes):
        for position, summary in enumerate(summaries):
            steps, values = summary.points("validation", metric)
            if steps:
                colour = theme.series[position % len(theme.series)]
                style = _LINE_STYLES[position // len(theme.series) % len(_LINE_STYLES)]
                name = formats.one_line(summary.run_id, 36)
                axes.plot(steps, values, style, color=colour, label=name, marker="o", markersize=3.5)
        _label_axes(axes, metric, None)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
        return _png(figure)


def confusion_plot(run_id: str, split: str, report: ClassReport, theme: Theme) -> bytes:
    """Draw the confusion matrix: colour is the share of the true class, cells hold count and share."""
    counts = np.array(report.confusion, dtype=np.int64).reshape(len(report.labels), -1)
    sums = counts.sum(axis=1, keepdims=True)
    shares = 100 * np.divide(counts, sums, out=np.zeros(counts.shape), where=sums > 0)
    side = min(12.0, max(4.2, 1.6 + 0.75 * min(len(report.labels), _ANNOTATED_CLASSES)))
    title = f"Confusion, {split} · {run_id}"
    with _axes(theme, title, width=side + 1.8, height=side) as (figure, axes):
        shades = LinearSegmentedColormap.from_list("shares", [theme.background, theme.series[0]])
        norm = PowerNorm(formats.SHADE_POWER, vmin=0, vmax=100)
        image = axes.imshow(shares, cmap=shades, norm=norm)
        bar = figure.colorbar(image, ax=axes, shrink=0.85)
        bar.set_label("share of the true class (%)")
        bar.outline.set_visible(False)
        axes.grid(False)
        axes.set_xlabel("predicted class")
        axes.set_ylabel("true class")
        _class_ticks(axes, report.labels)
        if len(report.labels) <= _ANNOTATED_CLASSES:
            _annotate(axes, counts, shares, theme)
        return _png(figure)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _file_name(stem: str) -> str:
    return re.sub(r"[^\w.-]", "_", stem) + ".png"


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


def _label_axes(axes: Axes, metric: str, summary: RunSummary | None) -> None:
    axes.set_xlabel("step (optimizer updates" + _epoch_length(summary) + ")")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.count(value)))
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


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=5,
            borderaxespad=0.2,
            handlelength=1.8,
            columnspacing=1.6,
            borderpad=0,
        )


def _class_ticks(axes: Axes, labels: Sequence[str]) -> None:
    if len(labels) > _LABELLED_CLASSES:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.set_xlabel("predicted class (number)")
        axes.set_ylabel("true class (number)")
        return
    names = [formats.one_line(label, 20) for label in labels]
    size = 10 if len(labels) <= _ANNOTATED_CLASSES else 7
    slanted = len(labels) > 6 or max(map(len, names), default=0) > 9
    axes.set_xticks(range(len(labels)), names, rotation=45 if slanted else 0, fontsize=size)
    axes.set_yticks(range(len(labels)), names, fontsize=size)
    if slanted:
        for text in axes.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def _annotate(axes: Axes, counts: Any, shares: Any, theme: Theme) -> None:
    for row, column in np.ndindex(counts.shape):
        text = f"{formats.count(counts[row, column])}\n{shares[row, column]:.1f} %"
        # Deep cells are dark blue on light paper and light blue on dark paper.
        dark_cell = (shares[row, column] > 40) == (theme is LIGHT)
        ink = "#ffffff" if dark_cell else "#1f2328"
        axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=8.5)


@contextmanager
def _axes(
    theme: Theme, title: str, width: float = 8.6, height: float = 4.2, title_pad: float = 10
) -> Iterator[tuple[Figure, Axes]]:
    """Give one pair of axes in the theme's dress; matplotlib's settings are restored afterwards."""
    with matplotlib.rc_context(_settings(theme)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(formats.one_line(title, int(width * 8)), loc="left", pad=title_pad)
        yield figure, axes


def _settings(theme: Theme) -> Any:
    return settings(theme, set(font_manager.get_font_names()))


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    # No version of the software in the file: the same numbers give the same bytes.
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
