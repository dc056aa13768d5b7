"""Figures in the colours of a theme, as PNG. Without pyplot, which would need a window system."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from toolkit.report import formats
from toolkit.report.plotting.themes import Theme, settings

_DPI = 150
_IN_A_ROW = 3


@contextmanager
def one_panel(
    theme: Theme, title: str, width: float = 8.6, height: float = 4.2, title_pad: float = 10
) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure, sized in inches, with one pair of axes; restore matplotlib's settings afterwards."""
    with _figure(theme, width, height) as figure:
        axes = figure.add_subplot()
        axes.set_title(formats.one_line(title, int(width * 8)), loc="left", pad=title_pad)
        yield figure, axes


@contextmanager
def many_panels(
    theme: Theme, title: str, count: int, *, same_x: bool = True
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give small pairs of axes below one title, three in a row, with common scales.

    same_x   False if each has its own x axis
    """
    rows = -(-count // _IN_A_ROW)
    size = (8.6, 0.9 + 1.75 * rows)
    with panel_grid(theme, title, rows, _IN_A_ROW, size, sharex=same_x, sharey=True) as (figure, panels):
        for empty in panels[count:]:
            empty.set_axis_off()
        for lowest in panels[max(0, count - _IN_A_ROW) : count]:
            lowest.tick_params(labelbottom=True)
        for panel in panels:
            panel.tick_params(labelsize=8)
        yield figure, panels[:count]


@contextmanager
def panel_grid(
    theme: Theme, title: str, rows: int, columns: int, size: tuple[float, float] = (8.6, 4.2), **shared: Any
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give rows and columns of axes below one title; `shared` says which scales they have in common."""
    with _figure(theme, *size) as figure:
        shown = formats.one_line(title, int(size[0] * 8))
        figure.suptitle(shown, x=0.012, ha="left", fontsize=12, fontweight="bold")
        yield figure, list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())


@contextmanager
def _figure(theme: Theme, width: float, height: float) -> Iterator[Figure]:
    # Not those of the user: `text.usetex` needs LaTeX, and a context cannot restore the backend.
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    rc: Any = defaults | settings(theme, set(font_manager.get_font_names()))
    with matplotlib.rc_context(rc), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield Figure(figsize=(width, height), dpi=_DPI, layout="constrained")


def png(figure: Figure) -> bytes:
    """Return a figure as PNG; the same numbers give the same bytes."""
    stream = io.BytesIO()
    # savefig() would draw it twice. The file must not name a software version.
    FigureCanvasAgg(figure).print_png(stream, metadata={"Software": None})
    return stream.getvalue()


def legend_above(axes: Axes, handles: Sequence[Artist] = (), columns: int = 5) -> None:
    """Put the legend between title and axes, where it hides nothing.

    handles  the artists to name; empty: all labelled artists of the axes
    """
    if named := handles or axes.get_legend_handles_labels()[0]:
        axes.legend(
            handles=named,
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=columns,
            borderaxespad=0.2,
            handlelength=1.8,
            columnspacing=1.6,
            borderpad=0,
        )
