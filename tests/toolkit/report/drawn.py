"""A report as its figures and as a terminal shows it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich.console import Console

from toolkit.report.comparison.document import comparison_document
from toolkit.report.comparison.reading import Compared, compare
from toolkit.report.model import RunSummary
from toolkit.report.plotting.themes import Theme
from toolkit.report.rendering.terminal import show
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir

Plots = dict[str, Callable[[Theme], bytes]]


def run_plots(summary: RunSummary) -> Plots:
    """Return the figures of a run by file name."""
    return {name: figure.draw for name, figure in run_document(summary).figures().items()}


def comparison_plots(runs: Sequence[RunSummary]) -> Plots:
    """Return the figures of several runs by file name."""
    document = comparison_document(Compared(runs=tuple(runs), unreadable={}))
    return {name: figure.draw for name, figure in document.figures().items()}


def printed(runs: Sequence[RunDir], width: int = 80, colour: bool = False) -> str:
    """Return what `stk report` prints in a terminal of this width, with its colours or without."""
    console = a_terminal(width, colour)
    show(run_document(summarize(runs[0])) if len(runs) == 1 else comparison_document(compare(runs)), console)
    return console.export_text(styles=colour)


def a_terminal(width: int, colour: bool = False) -> Console:
    return Console(
        record=True,
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=not colour,
        legacy_windows=False,
    )
