"""Figures in a theme's dress, and their bytes. No pyplot: no window system, nothing left open."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from toolkit.report import formats
from toolkit.report.themes import Theme, settings

_DPI = 150
_PANELS_IN_A_ROW = 3


@contextmanager
def one_panel(
    theme: Theme, title: str, width: float = 8.6, height: float = 4.2, title_pad: float = 10
) -> Iterator[tuple[Figure, Axes]]:
    """Give one pair of axes in inches of width and height; matplotlib's settings are restored afterwards."""
    with _figure(theme, width, height) as figure:
        axes = figure.add_subplot()
        axes.set_title(formats.one_line(title, int(width * 8)), loc="left", pad=title_pad)
        yield figure, axes


@contextmanager
def two_panels(
    theme: Theme, title: str, width: float = 8.6, height: float = 4.2
) -> Iterator[tuple[Figure, Axes, Axes]]:
    """Give two pairs of axes side by side below one title."""
    with _figure(theme, width, height) as figure:
        _title(figure, title, width)
        left, right = figure.subplots(1, 2)
        yield figure, left, right


@contextmanager
def many_panels(
    theme: Theme, title: str, count: int, width: float = 8.6, *, same_x: bool = True
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give so many small pairs of axes below one title, three in a row, with scales in common.

    same_x   False where each has an x axis of its own
    """
    rows = -(-count // _PANELS_IN_A_ROW)
    with _figure(theme, width, 0.9 + 1.75 * rows) as figure:
        _title(figure, title, width)
        panels = figure.subplots(rows, _PANELS_IN_A_ROW, sharex=same_x, sharey=True, squeeze=False).ravel()
        for empty in panels[count:]:
            empty.set_axis_off()
        for lowest in panels[max(0, count - _PANELS_IN_A_ROW) : count]:
            lowest.tick_params(labelbottom=True)
        for panel in panels:
            panel.tick_params(labelsize=8)
        yield figure, list(panels[:count])


@contextmanager
def stacked_panels(
    theme: Theme, title: str, count: int, width: float = 8.6
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give so many flat pairs of axes below each other, with one time in common."""
    with _figure(theme, width, 1.1 + 1.35 * count) as figure:
        _title(figure, title, width)
        panels = figure.subplots(count, 1, sharex=True, squeeze=False).ravel()
        yield figure, list(panels)


def _title(figure: Figure, title: str, width: float) -> None:
    shown = formats.one_line(title, int(width * 8))
    figure.suptitle(shown, x=0.012, ha="left", fontsize=12, fontweight="bold")


@contextmanager
def _figure(theme: Theme, width: float, height: float) -> Iterator[Figure]:
    with matplotlib.rc_context(_settings(theme)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def png(figure: Figure) -> bytes:
    """Return a figure as PNG; the same numbers give the same bytes."""
    stream = io.BytesIO()
    # No version of the software in the file.
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _settings(theme: Theme) -> Any:
    return settings(theme, set(font_manager.get_font_names()))


def legend_above(axes: Axes) -> None:
    """Put the legend between title and axes, where it hides nothing."""
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
