"""A report in a terminal of any width, with or without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text as Words

from toolkit.report import formats
from toolkit.report.blocks import Block, Document, Figure, Section, Table, Text

_STATE = "state"
_STATE_STYLES = {
    "finished": "bold green",
    "failed": "bold red",
    "unfinished": "bold yellow",
    "unreadable": "bold red",
}
_TEXT_STYLES = {"plain": "", "note": "dim", "strong": "bold", "code": "dim"}
_LABEL_WIDTH = 24
_HEAD_WIDTH = 12
#: Width of the labels of a matrix with numbered columns.
_NUMBERED_WIDTH = 14
_ROWS = 60
#: Shades of a matrix, from a small share to a large one.
_FAINT_RGB, _DEEP_RGB = (118, 126, 134), (0, 114, 178)
_LEAST_SHADED = 0.02


def show(document: Document, console: Console) -> None:
    """Print a report: its facts, then the sections except folded ones and those only for a page."""
    if document.facts or document.state:
        console.print(_facts(document))
    for section in document.sections:
        if not (section.page_only or section.folded):
            _show_section(section, console)


def _facts(document: Document) -> RenderableType:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    state = ((_STATE, document.state),) if document.state else ()
    for name, value in (*state, *document.facts):
        grid.add_row(name, Words(value, style=_STATE_STYLES.get(value, "") if name == _STATE else ""))
    return _panel(grid, document.title, "bold", expand=False)


def _panel(content: RenderableType, title: str, style: str, *, border: str = "none", expand: bool) -> Panel:
    heading = Words(f" {title} ", style=style)
    return Panel(
        content, title=heading, title_align="left", border_style=border, box=box.ROUNDED, expand=expand
    )


def _show_section(section: Section, console: Console) -> None:
    shown = [each for block in section.blocks for each in _drawn(block, console)]
    if section.is_failure:
        console.print(_panel(Group(*shown), section.title.lower(), "bold red", border="red", expand=True))
        return
    if shown and all(isinstance(block, Text) for block in section.blocks):
        console.print(Words(section.title, style="bold"))
    for each in shown:
        console.print(each)


def _drawn(block: Block, console: Console) -> Iterator[RenderableType]:
    match block:
        case Text():
            yield Words(block.text, style=_TEXT_STYLES[block.style], overflow="fold")
        case Figure(in_terminal=drawn) if drawn is not None:
            yield drawn(console.width)
            yield ""
        case Table(shares=shares) if shares:
            yield from _matrices(block, console)
        case Table():
            yield _table(block, console.width)
            if block.note:
                yield ""


def _table(table: Table, width: int) -> Grid:
    """Return a table with the rows and columns that fit."""
    if table.few is not None and len(table.few) < len(table.rows):
        table = table.only(table.few, table.few_note)
    elif len(table.rows) > _ROWS:
        note = f"the first {_ROWS} of {len(table.rows)} rows; the page has them all"
        table = table.only(range(_ROWS), note)
    if table.texts == len(table.head) > 3:
        return _in_lines(table)
    while table.optional and _width(table) > width:
        table = table.without(table.optional[0])
    return _in_columns(table, width)


def _in_lines(table: Table) -> Grid:
    """Return a table of texts only: the first cell of a row labels its others, each in its own line."""
    grid = Grid.grid(padding=(0, 2))
    grid.title, grid.title_justify = Words(table.title, style="bold"), "left"
    grid.add_column(no_wrap=True, style="bold yellow")
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for first, *others in table.rows:
        for place, (name, cell) in enumerate(zip(table.head[1:], others, strict=True)):
            grid.add_row(Words("" if place else first), Words(name), Words(cell))
    return grid


def _in_columns(table: Table, width: int) -> Grid:
    grid = _titled(table.title)
    is_tight = bool(table.optional) and _width(table) + _LABEL_WIDTH > width
    least = _widths(table)
    for column, name in enumerate(table.head):
        justify: Literal["left", "right"] = "left" if column < table.texts else "right"
        # Headings are wrapped rather than numbers.
        fixed = least[column] if is_tight and column else None
        grid.add_column(Words(name), justify=justify, overflow="fold", width=fixed)
    for row, cells in enumerate(table.rows):
        if row in table.parts:
            grid.add_section()
        grid.add_row(*(Words(cell, style=_style(table, row, column)) for column, cell in enumerate(cells)))
    grid.add_section()
    for cells in table.feet:
        grid.add_row(*(Words(cell, style="bold") for cell in cells))
    if table.note:
        grid.caption = Words(table.note, style="dim")
    return grid


def _style(table: Table, row: int, column: int) -> str:
    if (row, column) in table.best:
        return "bold green"
    return _STATE_STYLES.get(table.rows[row][column], "") if table.head[column] == _STATE else ""


def _width(table: Table) -> int:
    """Cells that a table needs: names are folded, headings are broken between words."""
    first, *others = _widths(table)
    # Three cells separate two columns, and one is at each end.
    return 2 + sum(others) + 3 * len(others) + min(first, _LABEL_WIDTH)


def _widths(table: Table) -> list[int]:
    """Cells that each column needs at least."""
    columns = zip(*table.rows, *table.feet, strict=True)
    widths = [max(map(cell_len, column)) for column in columns] or [0] * len(table.head)
    words = (max(map(cell_len, name.split()), default=0) for name in table.head)
    return list(map(max, widths, words))


def _titled(title: str) -> Grid:
    heading = Words(title, style="bold")
    return Grid(
        title=heading, title_justify="left", caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )


def _matrices(table: Table, console: Console) -> Iterator[RenderableType]:
    """Yield a matrix as numbers and in per cent of its rows; its replacement if it does not fit."""
    name, bracket, view = table.title.partition(" (")
    cells: dict[str, Sequence[Sequence[str]]] = {
        table.title: [row[1:] for row in table.rows],
        f"{name}, %{bracket}{view}": [
            [formats.decimal(None if share is None else 100 * share, 1) for share in row]
            for row in table.shares
        ],
    }
    drawn = [made for title in cells if (made := _matrix(table, title, cells[title], console)) is not None]
    yield from drawn or (each for block in table.instead for each in _drawn(block, console))


def _matrix(table: Table, title: str, cells: Sequence[Sequence[str]], console: Console) -> Grid | None:
    """Return a matrix. If its labels are too wide as column headings, numbers replace them.

    None if even that is too wide.
    """
    for is_numbered in (False, True):
        matrix = _labelled(table, title, cells, is_numbered)
        if Measurement.get(console, console.options.update(width=10_000), matrix).maximum <= console.width:
            return matrix
    return None


def _labelled(table: Table, title: str, cells: Sequence[Sequence[str]], is_numbered: bool) -> Grid:
    grid = _titled(title)
    # The numbers of a dozen classes have to fit into 80 columns.
    grid.padding = (0, 0) if is_numbered else (0, 1)
    corner, *heads = table.head
    grid.add_column(corner.split()[0] + " ╲" if is_numbered else corner, no_wrap=True)
    if is_numbered:
        grid.add_column("", justify="right", style="dim", no_wrap=True)
    for number, name in enumerate(heads, start=1):
        head = str(number) if is_numbered else formats.one_line(name, _HEAD_WIDTH)
        grid.add_column(Words(head), justify="right", no_wrap=True)
    for place, (label, *_) in enumerate(table.rows):
        row = zip(cells[place], table.shares[place], strict=True)
        shaded = [_shaded(cell, share, place == column) for column, (cell, share) in enumerate(row)]
        counted = [str(place + 1)] if is_numbered else []
        width = _NUMBERED_WIDTH if is_numbered else _LABEL_WIDTH
        grid.add_row(Words(formats.one_line(label, width)), *counted, *shaded)
    return grid


def _shaded(text: str, share: float | None, is_diagonal: bool) -> Words:
    """Shade a cell by its share of the row, from grey to blue.

    The text is white on a medium shade, and tiny shares get no shade: light and dark terminals cannot be
    told apart, so it must be readable on both.
    """
    if share is None or share < _LEAST_SHADED:
        return Words(text, style="bold" if is_diagonal else "dim")
    depth = share**formats.SHADE_POWER
    pairs = zip(_FAINT_RGB, _DEEP_RGB, strict=True)
    red, green, blue = (round(low + (high - low) * depth) for low, high in pairs)
    weight = "bold " if is_diagonal else ""
    return Words(text, style=f"{weight}#ffffff on rgb({red},{green},{blue})")
