"""`stk status` for people."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from slurm.status.layout import Line, lay_out
from slurm.status.rows import RunStatus

_STYLES = ("", "bold", "bright_black", "green", "yellow", "magenta", "red")


def show(rows: Sequence[RunStatus]) -> None:
    """Print a table of runs, with the reasons below their rows.

    On a terminal it is as wide as that; elsewhere as wide as it gets, unless COLUMNS says how wide.
    """
    console = Console(highlight=False)
    bounded = console.is_terminal or os.environ.get("COLUMNS", "").isdecimal()
    styles = {style: _codes(console, style) for style in _STYLES}
    lines = (_plain(line, styles) for line in lay_out(rows, console.width if bounded else None))
    # Not by rich's own tables: for thousands of rows they take a minute.
    console.file.write("".join(lines))


@dataclass(frozen=True, slots=True)
class table:
    """The same as show prints, as something that rich draws, again and again."""

    rows: Sequence[RunStatus]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in lay_out(self.rows, options.max_width):
            yield Text.assemble(*line, no_wrap=True, overflow="crop", end="\n")


def _codes(console: Console, style: str) -> tuple[str, str]:
    """Return the codes before and after text of a style; empty without colours."""
    if console.no_color:
        return "", ""
    with console.capture() as capture:
        console.print(Text("x", style=style), end="")
    before, _, after = capture.get().partition("x")
    return before, after


def _plain(line: Line, styles: dict[str, tuple[str, str]]) -> str:
    pieces = []
    for text, style in line:
        before, after = styles[style]
        pieces.append(f"{before}{text}{after}")
    return "".join(pieces).rstrip() + "\n"
