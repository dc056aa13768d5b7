"""A report as values: tables, figures and texts, from which all its forms are rendered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from toolkit.registry import load_code
from toolkit.report.plotting.themes import Theme

Row = tuple[str, ...]
Block: TypeAlias = "Table | Figure | Text | Numbers"

#: A matrix with more columns is replaced by its `instead` on a page and in Markdown.
_MATRIX_COLUMNS = 12
#: More figures make a page slow to open.
_SIDE_BY_SIDE = 12
#: Begins the value of MPLBACKEND that names a module.
_MODULE = "module://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells as people read them.

    texts     columns from the left that are text; the others are numbers
    prose     text columns that keep their line breaks
    feet      rows below, such as sums
    best      row and column of the cells that are the best of their kind
    parts     rows before which a new part begins
    optional  columns that a narrow terminal leaves out, in this order
    few       rows that a terminal shows; None: all that fit
    few_note  describes these rows
    shares    if it is a matrix: all cells but the first column, as shares of their row
    instead   blocks that replace a matrix that is too wide
    note      an explanation of the table
    """

    title: str
    head: Row
    rows: tuple[Row, ...]
    texts: int = 1
    prose: tuple[int, ...] = ()
    feet: tuple[Row, ...] = ()
    best: frozenset[tuple[int, int]] = frozenset()
    parts: frozenset[int] = frozenset()
    optional: tuple[int, ...] = ()
    few: tuple[int, ...] | None = None
    few_note: str = ""
    shares: tuple[tuple[float | None, ...], ...] = ()
    instead: tuple[Block, ...] = ()
    note: str = ""

    @property
    def is_too_wide(self) -> bool:
        """Whether it is a matrix that is too wide for a page."""
        return bool(self.shares) and len(self.head) > 1 + _MATRIX_COLUMNS

    def without(self, left_out: int) -> Table:
        """Return the table without one column."""
        kept = [column for column in range(len(self.head)) if column != left_out]
        place = {column: at for at, column in enumerate(kept)}
        return replace(
            self,
            head=tuple(self.head[column] for column in kept),
            rows=tuple(tuple(row[column] for column in kept) for row in self.rows),
            feet=tuple(tuple(row[column] for column in kept) for row in self.feet),
            texts=self.texts - (left_out < self.texts),
            best=frozenset((row, place[column]) for row, column in self.best if column in place),
            optional=tuple(place[column] for column in self.optional if column in place),
        )

    def only(self, rows: Sequence[int], note: str) -> Table:
        """Return the table with some of its rows; the note names them."""
        place = {row: at for at, row in enumerate(rows)}
        return replace(
            self,
            rows=tuple(self.rows[row] for row in rows),
            best=frozenset((place[row], column) for row, column in self.best if row in place),
            parts=frozenset(place[row] for row in self.parts if row in place),
            few=None,
            note=f"{note}\n{self.note}".strip(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot.

    name         of its file, without .png; empty if it has no file
    about        its description, in a line
    draw         returns it as PNG in the colours of a theme
    in_terminal  returns its replacement, for rich, in a terminal with this many columns; None: no replacement
    """

    name: str
    about: str
    draw: Callable[[Theme], bytes]
    in_terminal: Callable[[int], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A paragraph.

    style  note: less important; strong: more important; code: shown unchanged
    title  a page folds the text under it; empty: not folded
    """

    text: str
    style: Literal["plain", "note", "strong", "code"] = "plain"
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Numbers in full, for a spreadsheet: the file `name`.csv. No other form shows them."""

    name: str
    head: Sequence[str]
    rows: Iterable[Sequence[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks that belong together.

    page_only  a terminal leaves it out
    folded     a page folds it under this line, together with neighbours that have the same line;
               no other form shows it
    grid       figures are side by side
    is_failure it shows why the run failed
    """

    title: str
    blocks: tuple[Block, ...]
    page_only: bool = False
    folded: str = ""
    grid: bool = False
    is_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report.

    state  of the run; empty if the report is not about one run
    note   how new the data are
    facts  name and value of the most important facts
    """

    title: str
    sections: tuple[Section, ...]
    state: str = ""
    note: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of all sections, and the blocks that may replace a matrix."""
        for section in self.sections:
            for block in section.blocks:
                yield block
                if isinstance(block, Table):
                    yield from block.instead

    def figures(self) -> dict[str, Figure]:
        """Return the figures that have a file, by its name."""
        found = (block for block in self.blocks() if isinstance(block, Figure) and block.name)
        return {f"{figure.name}.png": figure for figure in found}


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], **facts: Any) -> Table:
    """Return a table of these rows; facts are further fields of a Table."""
    return Table(title=title, head=tuple(head), rows=tuple(map(tuple, rows)), **facts)


def table_section(found: Table, *before: Block, **facts: Any) -> Section:
    """Return a section that is titled as its table; facts are further fields of a Section."""
    return Section(title=found.title, blocks=(*before, found), **facts)


def turned(table_: Table, corner: str) -> Table:
    """Return a table with its rows as columns, for a table with too many columns."""
    head, *rows = zip(table_.head, *table_.rows, strict=True)
    best = frozenset((column - 1, row + 1) for row, column in table_.best)
    return table(table_.title, (corner, *head[1:]), rows, best=best, note=table_.note)


def figure(name: str, about: str, code: str, *arguments: Any, **facts: Any) -> Figure:
    """Return a figure that `code`, "module:attribute", draws from these arguments and a theme."""
    return Figure(name=name, about=about, draw=partial(_drawn, code, arguments), **facts)


def _drawn(code: str, arguments: tuple[Any, ...], theme: Theme) -> bytes:
    # Imported when it is called, because importing matplotlib is slow.
    _forget_missing_backend()
    drawn: bytes = load_code(code)(*arguments, theme)
    return drawn


def _forget_missing_backend() -> None:
    """Remove MPLBACKEND if it names a module that is not installed: matplotlib could not be imported.

    A notebook sets it, and commands and jobs of other environments inherit it.
    """
    name = os.environ.get("MPLBACKEND", "")
    if name.startswith(_MODULE) and find_spec(name.removeprefix(_MODULE).partition(".")[0]) is None:
        del os.environ["MPLBACKEND"]


def side_by_side(what: str, figures: Sequence[Figure]) -> Iterator[Section]:
    """Yield a section with the first figures of several runs; nothing for a single run."""
    if len(figures) > 1:
        shown = tuple(replace(each, name="") for each in figures[:_SIDE_BY_SIDE])
        yield Section(title=f"{what}, side by side", blocks=shown, grid=True, page_only=True)
