"""`stk status` for people: a table of runs for a terminal of any width."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from slurm.status.columns import Column, colour, columns, footer, printable, reason
from slurm.status.rows import RunStatus
from slurm.status.run_state import CANNOT_ASK

#: Pieces of a line: text and its style in rich's words.
Line = list[tuple[str, str]]

_GAP = "  "
#: The run and its state may take so much of a narrow terminal, so that the numbers have room.
_SHARES = {"run": 0.40, "state": 0.45}
_LEAST = 12
_STYLES = ("", "bold", "bright_black", "green", "yellow", "magenta", "red")


def lay_out(rows: Sequence[RunStatus], width: int | None) -> Iterator[Line]:
    """The lines of the table, a reason below its row, and the sum at the end.

    width   characters of a line; None for as many as it takes
    """
    return chain.from_iterable(blocks(rows, width))


def blocks(rows: Sequence[RunStatus], width: int | None) -> Iterator[list[Line]]:
    """The same lines in groups: the title, each row with its reason, the sum."""
    shown = _fit(columns(rows), width)
    yield [[(_padded(column, column.title, wide), "bold") for column, wide in shown]]
    for number, row in enumerate(rows):
        cells: Line = [
            (_padded(column, column.cells[number], wide), colour(row) if column.title == "state" else "")
            for column, wide in shown
        ]
        is_told_below = row.reason.startswith(CANNOT_ASK)
        yield [cells] if is_told_below else [cells, *_wrapped(reason(row), width)]
    yield list(_footer(rows, width))


def _footer(rows: Sequence[RunStatus], width: int | None) -> Iterator[Line]:
    if len(rows) > 1:
        yield [("", "")]
        yield from _wrapped(footer(rows), width, indent="", style="bold")
    for text in dict.fromkeys(row.reason for row in rows if row.reason.startswith(CANNOT_ASK)):
        yield from _wrapped(printable(text), width, indent="")


def _wrapped(
    text: str, width: int | None, *, indent: str = _GAP, style: str = "bright_black"
) -> Iterator[Line]:
    if not text:
        return
    lines = [text] if width is None else _folded(text, max(_LEAST, width - len(indent)))
    yield from ([(indent + line, style)] for line in lines)


def _folded(text: str, width: int) -> list[str]:
    """Break a text into lines of at most this number of cells."""
    if text.isascii():
        return textwrap.wrap(text, width)
    return [line.plain for line in Text(text).wrap(Console(width=width), width)]


def _fit(every: Sequence[Column], width: int | None) -> list[tuple[Column, int]]:
    """The columns that have room, each with its width; the most needed ones first."""
    natural = {each.title: max(map(_cells, (each.title, *each.cells))) for each in every}
    if width is None:
        return [(column, natural[column.title]) for column in every]
    taken = {title: min(natural[title], max(_LEAST, int(share * width))) for title, share in _SHARES.items()}
    for column in sorted(every, key=lambda each: each.need):
        title = column.title
        if title not in taken and _total(taken) + len(_GAP) + natural[title] <= width:
            taken[title] = natural[title]
    for title in ("state", "run"):
        # What is left over goes back to those that were cut.
        taken[title] = min(natural[title], taken[title] + max(0, width - _total(taken)))
    return [(column, taken[column.title]) for column in every if column.title in taken]


def _total(taken: dict[str, int]) -> int:
    return sum(taken.values()) + len(_GAP) * (len(taken) - 1)


def _padded(column: Column, text: str, width: int) -> str:
    """Cut or filled to the width, with the gap after it."""
    text = _cut(text, width, keeps_end=column.title == "run")
    fill = " " * (width - _cells(text))
    return (fill + text if column.is_number else text + fill) + _GAP


def _cut(text: str, width: int, keeps_end: bool) -> str:
    """Text cut to a width; a run's id keeps both ends, which distinguish it from others."""
    if _cells(text) <= width:
        return text
    if not text.isascii():
        return set_cell_size(text, width - 1) + "…"
    head = (width - 1) // 2 if keeps_end else width - 1
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _cells(text: str) -> int:
    """Characters of a terminal that a text takes."""
    return len(text) if text.isascii() else cell_len(text)


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
