"""Plots of time: the attempts of a run, or several runs, on a time line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from toolkit.report import formats
from toolkit.report.model import RunSummary
from toolkit.report.plotting.figures import legend_above, one_panel, png
from toolkit.report.plotting.themes import Theme
from toolkit.report.time_and_resources.times import TIME_PARTS
from toolkit.run.attempts.goodput import Span

_ROWS = 40
_NAME_WIDTH = 30
#: Longest time that is shown in a unit, in that unit.
_UNITS = (("s", 1, 180), ("min", 60, 180), ("h", 3600, 96), ("d", 86400, float("inf")))


def timeline_plot(summary: RunSummary, theme: Theme) -> bytes:
    """Draw the attempts of a run below each other; if there are many, the last ones."""
    times = [attempt.time for attempt in summary.attempt_usage[-_ROWS:]]
    rows = [(f"attempt {time.attempt}  {_share(time.spent.share)}", list(time.spans())) for time in times]
    return _draw(f"Time line · {summary.run_id}", rows, theme, together=True)


def timelines_plot(summaries: Sequence[RunSummary], theme: Theme) -> bytes:
    """Draw several runs below each other, each from its own beginning."""
    begun = [summary for summary in summaries if summary.attempt_usage][:_ROWS]
    rows = [
        (
            f"{formats.one_line(summary.run_id, _NAME_WIDTH)}\n{_share(summary.goodput.share)}",
            [span for attempt in summary.attempt_usage for span in attempt.time.spans()],
        )
        for summary in begun
    ]
    return _draw("Time lines, with goodput", rows, theme, together=False)


def _draw(title: str, rows: Sequence[tuple[str, list[Span]]], theme: Theme, together: bool) -> bytes:
    first = min((span.begin for _, spans in rows for span in spans), default=0.0)
    begins = [first if together else min((span.begin for span in spans), default=0.0) for _, spans in rows]
    longest = max(
        (span.end - begin for begin, (_, spans) in zip(begins, rows, strict=True) for span in spans),
        default=1.0,
    )
    unit, seconds = next((name, size) for name, size, most in _UNITS if longest / size <= most)
    with one_panel(theme, title, height=1.5 + 0.4 * max(len(rows), 1), title_pad=26) as (figure, axes):
        for row, (begin, (_, spans)) in enumerate(zip(begins, rows, strict=True)):
            _bars(axes, row, spans, begin, seconds, theme)
        axes.set_yticks(range(len(rows)), [label for label, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(0, 1.01 * longest / seconds)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8))
        axes.grid(False, axis="y")
        axes.set_xlabel(
            f"time since the {'first submission or start' if together else 'beginning of each'} ({unit})"
        )
        found = {span.kind for _, spans in rows for span in spans}
        named = [part for part in TIME_PARTS if part.name in found]
        legend_above(axes, [Patch(color=part.colour(theme), label=part.name) for part in named], 6)
        return png(figure)


def _bars(axes: Axes, row: int, spans: Iterable[Span], begin: float, seconds: float, theme: Theme) -> None:
    # Saves are drawn over the training that they interrupt.
    for part in TIME_PARTS:
        found = [span for span in spans if span.kind == part.name]
        pairs = [((span.begin - begin) / seconds, (span.end - span.begin) / seconds) for span in found]
        height = 0.16 if part.name in ("waiting", "away") else 0.6
        if pairs:
            axes.broken_barh(pairs, (row - height / 2, height), facecolors=part.colour(theme), linewidth=0)


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"
