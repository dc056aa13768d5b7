"""Memory, CPUs and GPUs of every rank over the time of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from toolkit.monitoring.usage.values import Moment, RankUsage
from toolkit.report.model import RunSummary
from toolkit.report.plotting.figures import panel_grid, png
from toolkit.report.plotting.themes import Theme

#: With more ranks, their lines cannot be distinguished anyway.
_NAMED_RANKS = 7
_RANKS = 64

#: Name of the axis, and its value at a moment; None if unknown.
_Panel = tuple[str, Callable[[Moment], float | None]]
_PANELS: tuple[_Panel, ...] = (
    ("memory (GB)", lambda moment: moment.rss_mb / 1024),
    ("CPUs busy", lambda moment: moment.cpu_percent / 100),
    ("GPU busy (%)", lambda moment: moment.gpu_utilization),
    ("GPU memory (GB)", lambda moment: None if moment.gpu_memory_mb is None else moment.gpu_memory_mb / 1024),
)


def usage_plot(summary: RunSummary, theme: Theme) -> bytes:
    """Draw one line for each rank, with a gap between two attempts."""
    moments = [moment for rank in summary.usage for moment in rank.history]
    panels = [(name, value) for name, value in _PANELS if any(value(each) is not None for each in moments)]
    first = min(moment.time for moment in moments)
    last = max(moment.time for moment in moments)
    unit, seconds = ("h", 3600.0) if last - first > 3 * 3600 else ("min", 60.0)
    ranks = [rank for rank in summary.usage if rank.rank < _RANKS]
    title, size = f"Memory, CPUs and GPUs · {summary.run_id}", (8.6, 1.1 + 1.35 * len(panels))
    with panel_grid(theme, title, len(panels), 1, size, sharex=True) as (figure, all_axes):
        for axes, (name, value) in zip(all_axes, panels, strict=True):
            _lines(axes, ranks, value, first, seconds, theme)
            axes.set_ylabel(name, fontsize=9)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        all_axes[-1].set_xlabel(f"time since the first record ({unit})")
        handles, labels = all_axes[0].get_legend_handles_labels()
        if 1 < len(labels) <= _NAMED_RANKS:
            figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), fontsize=9)
        return png(figure)


def _lines(
    axes: Axes,
    ranks: Sequence[RankUsage],
    value: Callable[[Moment], float | None],
    first: float,
    seconds: float,
    theme: Theme,
) -> None:
    named: set[int] = set()
    for rank in ranks:
        points = [((each.time - first) / seconds, value(each)) for each in rank.history]
        known = [(at, found) for at, found in points if found is not None]
        if not known:
            continue
        label = None if rank.rank in named else f"rank {rank.rank}"
        named.add(rank.rank)
        colour = theme.series[rank.rank % len(theme.series)]
        axes.plot(*zip(*known, strict=True), color=colour, linewidth=1.3, label=label)
