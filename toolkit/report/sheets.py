"""A table as a value: the same for terminal, page and Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Cells as people read them.

    texts     columns from the left that are text; the others are numbers
    feet      rows below, such as sums
    best      row and column of the cells that are the best of their kind
    sections  rows before which a new part begins
    optional  columns that a narrow terminal leaves out, the first of them first
    note      what has to be known to read it
    """

    title: str
    head: Row
    rows: tuple[Row, ...]
    texts: int = 1
    feet: tuple[Row, ...] = ()
    best: frozenset[tuple[int, int]] = frozenset()
    sections: frozenset[int] = frozenset()
    optional: tuple[int, ...] = ()
    note: str = ""

    def without(self, left_out: int) -> Sheet:
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


def sheet(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], **facts: object) -> Sheet:
    """Return a table of these rows; facts are further fields of a Sheet."""
    return Sheet(title=title, head=tuple(head), rows=tuple(map(tuple, rows)), **facts)  # type: ignore[arg-type]


def turned(table: Sheet, corner: str) -> Sheet:
    """Return a table with its rows as columns, where there are more columns than a reader can follow."""
    columns = list(zip(table.head, *table.rows, strict=True))
    head, *rows = columns
    best = frozenset((column - 1, row + 1) for row, column in table.best)
    return Sheet(
        title=table.title, head=(corner, *head[1:]), rows=tuple(rows), best=best, texts=1, note=table.note
    )
