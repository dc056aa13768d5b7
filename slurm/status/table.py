"""The text output of `stk status`: a table of runs for a terminal of any width."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from slurm.status.columns import Column, colour, columns, footer, printable, reason
from slurm.status.rows import RunStatus
from slurm.status.run_state import CANNOT_ASK

#: Pieces of a line: text, and its style in rich's notation.
Line = list[tuple[str, str]]

_GAP = "  "
#: Largest shares of the run and its state in a narrow terminal, to leave space for numbers.
_SHARES = {"run": 0.40, "state": 0.45}
_LEAST = 12
#: Width of rich's tables in files and pipes, which they do not fill.
_UNLIMITED = 10_000
_STYLES = ("", "bold", "bright_black", "green", "yellow", "magenta", "red")


def lay_out(rows: Sequence[RunStatus], width: int | None) -> Iterator[Line]:
    """Yield the lines of the table: each row with its reason below it, and the sum at the end.

    width   largest width of a line; None: no limit
    """
    return chain.from_iterable(blocks(rows, width))


def blocks(rows: Sequence[RunStatus], width: int | None) -> Iterator[list[Line]]:
    """Yield the same lines in groups: the title, each row with its reason, the sum."""
    shown = _fit(columns(rows), width)
    yield [[(_padded(column, column.title, wide), "bold") for column, wide in shown]]
    for number, row in enumerate(rows):
        cells: Line = [
            (_padded(column, column.cells[number], wide), colour(row) if column.title == "state" else "")
            for column, wide in shown
        ]
        is_in_footer = row.reason.startswith(CANNOT_ASK)
        yield [cells] if is_in_footer else [cells, *_wrapped(reason(row), width)]
    end: list[Line] = []
    if len(rows) > 1:
        end += [[("", "")], *_wrapped(footer(rows), width, indent="", style="bold")]
    for text in dict.fromkeys(row.reason for row in rows if row.reason.startswith(CANNOT_ASK)):
        end += _wrapped(printable(text), width, indent="")
    yield end


def _wrapped(
    text: str, width: int | None, *, indent: str = _GAP, style: str = "bright_black"
) -> Iterator[Line]:
    if not text:
        return
    lines = [text]
    if width is not None:
        cells = max(_LEAST, width - len(indent))
        if text.isascii():
            lines = textwrap.wrap(text, cells)
        else:
            lines = [line.plain for line in Text(text).wrap(Console(width=cells), cells)]
    yield from ([(indent + line, style)] for line in lines)


def _fit(every: Sequence[Column], width: int | None) -> list[tuple[Column, int]]:
    """Return the columns that fit, each with its width; columns with a small `need` come first."""
    natural = {each.title: max(map(_cells, (each.title, *each.cells))) for each in every}
    if width is None:
        return [(column, natural[column.title]) for column in every]
    taken = {title: min(natural[title], max(_LEAST, int(share * width))) for title, share in _SHARES.items()}
    for column in sorted(every, key=lambda each: each.need):
        title = column.title
        if title not in taken and _total(taken) + len(_GAP) + natural[title] <= width:
            taken[title] = natural[title]
    for title in ("state", "run"):
        # Remaining space is given to these columns, which may have been cut.
        taken[title] = min(natural[title], taken[title] + max(0, width - _total(taken)))
    return [(column, taken[column.title]) for column in every if column.title in taken]


def _total(taken: dict[str, int]) -> int:
    return sum(taken.values()) + len(_GAP) * (len(taken) - 1)


def _padded(column: Column, text: str, width: int) -> str:
    """Return a text that is cut or padded to the width, with the gap after it."""
    cells = _cells(text)
    if cells > width and text.isascii():
        # A run's id keeps both ends, which distinguish it from others.
        head = (width - 1) // 2 if column.title == "run" else width - 1
        text = f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
    elif cells > width:
        text = set_cell_size(text, width - 1) + "…"
    # A text that was cut fills the width.
    fill = " " * (width - cells)
    return (fill + text if column.is_number else text + fill) + _GAP


def _cells(text: str) -> int:
    """Return the width of a text in cells of a terminal."""
    return len(text) if text.isascii() else cell_len(text)


def console_for_tables() -> Console:
    """Return a console for rich's tables, as wide as `show` allows."""
    console = Console()
    return console if _is_limited(console) else Console(width=_UNLIMITED)


def _is_limited(console: Console) -> bool:
    # Rich takes a file for a terminal if FORCE_COLOR is set.
    is_on_terminal = console.is_terminal and console.file.isatty()
    return is_on_terminal or os.environ.get("COLUMNS", "").isdecimal()


def show(rows: Sequence[RunStatus]) -> None:
    """Print a table of runs, with the reasons below their rows.

    The width is limited by the terminal; elsewhere only by COLUMNS, if it is set.
    """
    console = Console(highlight=False)
    styles = {style: _codes(console, style) for style in _STYLES}
    lines = []
    for line in lay_out(rows, console.width if _is_limited(console) else None):
        pieces = [f"{styles[style][0]}{text}{styles[style][1]}" for text, style in line]
        lines.append("".join(pieces).rstrip() + "\n")
    # Not with rich's tables: they take a minute for thousands of rows.
    console.file.write("".join(lines))


def _codes(console: Console, style: str) -> tuple[str, str]:
    """Return the codes before and after text of a style; empty without colours."""
    if console.no_color:
        return "", ""
    with console.capture() as capture:
        console.print(Text("x", style=style), end="")
    before, _, after = capture.get().partition("x")
    return before, after
