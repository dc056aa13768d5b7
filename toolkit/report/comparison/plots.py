"""Plots of several runs laid over each other, and their own plots side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from toolkit.report import facts, formats
from toolkit.report.canvas import one_panel, png
from toolkit.report.comparison.groups import Group, Spread, groups, has_seeds, spread
from toolkit.report.plots import Plot, label_axes, run_plots
from toolkit.report.spent.timeline_plot import timelines_plot
from toolkit.report.themes import Theme
from toolkit.report.values import RunSummary, main_metric, score_names

_LINE_STYLES = ("-", "--", "-.", ":")
_METRICS = 6
_POINTS_MARKED = 60
#: More names than this do not fit beside the axes.
_NAMED = 20
_NAME_WIDTH = 32
#: Own plots of more runs make a page that nobody opens.
_OWN_PLOTS = 12


def comparison_plots(summaries: Sequence[RunSummary]) -> dict[str, Plot]:
    """Return by file name the plots that these runs have data for; each is drawn when it is called."""
    plots: dict[str, Plot] = {}
    for metric in _metrics(summaries):
        name = formats.file_name(metric)
        plots[f"{name}.png"] = partial(overlay_plot, summaries, "validation", metric)
        found = [group for group in groups(summaries) if _band(group, metric)]
        if found and has_seeds(found):
            plots[f"{name}_seeds.png"] = partial(seeds_plot, found, metric)
    if any(summary.points("train", "loss")[0] for summary in summaries):
        plots["train_loss.png"] = partial(overlay_plot, summaries, "train", "loss")
    if any(summary.starts for summary in summaries):
        plots["timelines.png"] = partial(timelines_plot, summaries)
    return plots


def own_plots(summaries: Sequence[RunSummary]) -> dict[str, dict[str, Plot]]:
    """Return by file name the runs' own plots of the compared split, each by the run's id.

    Only those that at least two runs have.
    """
    split = facts.compared_split(summaries)
    wanted = (f"confusion_{split}.png", f"curves_{split}.png", "slices.png")
    plots = {summary.run_id: run_plots(summary) for summary in summaries[:_OWN_PLOTS]}
    found = {
        name: {run_id: known[name] for run_id, known in plots.items() if name in known} for name in wanted
    }
    return {name: drawn for name, drawn in found.items() if len(drawn) > 1}


def overlay_plot(summaries: Sequence[RunSummary], split: str, metric: str, theme: Theme) -> bytes:
    """Draw one metric of a split for several runs; line styles change when colours run out."""
    title = f"{split.capitalize()} {formats.metric_title(metric)}"
    with one_panel(theme, title, width=9.5) as (figure, axes):
        for position, summary in enumerate(summaries):
            steps, values = summary.points(split, metric)
            if steps:
                style = _style(position, theme)
                marker = "o" if split != "train" and len(steps) <= _POINTS_MARKED else None
                label = _name(summary.run_id, position)
                axes.plot(steps, values, **style, label=label, marker=marker, markersize=3.5, linewidth=1.5)
        label_axes(axes, metric, None)
        _legend_beside(axes)
        return png(figure)


def seeds_plot(found: Sequence[Group], metric: str, theme: Theme) -> bytes:
    """Draw the mean over the seeds of each setting, and its deviation as a band."""
    title = f"Validation {formats.metric_title(metric)}: mean ± deviation over seeds"
    with one_panel(theme, title, width=9.5) as (figure, axes):
        for position, group in enumerate(found):
            band = _band(group, metric)
            steps = list(band)
            means = [each.mean for each in band.values()]
            low = [each.mean - (each.deviation or 0.0) for each in band.values()]
            high = [each.mean + (each.deviation or 0.0) for each in band.values()]
            style = _style(position, theme)
            runs = max(each.runs for each in band.values())
            label = _name(f"{group.label} (n = {runs})", position)
            marker = "o" if len(steps) <= _POINTS_MARKED else None
            axes.plot(steps, means, **style, label=label, linewidth=2, marker=marker, markersize=3.5)
            axes.fill_between(steps, low, high, color=style["color"], alpha=0.22, linewidth=0)
        label_axes(axes, metric, None)
        _legend_beside(axes)
        return png(figure)


def _metrics(summaries: Sequence[RunSummary]) -> list[str]:
    """The loss, what the runs choose their best by, and what else several runs were scored by on the way."""
    first = ["loss", *filter(None, map(main_metric, summaries))]
    known = [name for name in score_names(summaries) if _drawn(summaries, name) > 1]
    wanted = list(dict.fromkeys([*first, *known]))
    return [name for name in wanted if _drawn(summaries, name)][:_METRICS]


def _drawn(summaries: Sequence[RunSummary], metric: str) -> int:
    return sum(bool(summary.points("validation", metric)[0]) for summary in summaries)


def _band(group: Group, metric: str) -> Mapping[float, Spread]:
    """Mean and deviation over the runs of a setting that have finished; before one has, over all that began.

    At the steps at which all of them were scored.
    """
    curves = [
        dict(zip(*run.points("validation", metric), strict=True))
        for run in group.finished or group.runs
        if run.points("validation", metric)[0]
    ]
    steps = [step for step in (curves[0] if curves else ()) if all(step in curve for curve in curves)]
    spreads = ((step, spread(curve[step] for curve in curves)) for step in steps)
    return {step: each for step, each in spreads if each is not None}


def _style(position: int, theme: Theme) -> dict[str, Any]:
    line = _LINE_STYLES[position // len(theme.series) % len(_LINE_STYLES)]
    return {"color": theme.series[position % len(theme.series)], "linestyle": line}


def _name(text: str, position: int) -> str | None:
    """A name for the legend; of a long one beginning and end, in which runs differ."""
    if position >= _NAMED:
        return None
    flat = formats.one_line(text, len(text) + 1)
    half = _NAME_WIDTH // 2
    return flat if len(flat) <= _NAME_WIDTH else f"{flat[: half - 1]}…{flat[-half:]}"


def _legend_beside(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, fontsize=8)
