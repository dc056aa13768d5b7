"""Tables and pictures as Markdown, for a README, an issue or a mail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from toolkit.report.sheets import Sheet

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def escaped(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def heading(title: str, level: int = 2) -> str:
    """Return a heading."""
    return f"{'#' * level} {escaped(title)}\n"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return names with their values as a list."""
    return "".join(f"- {escaped(name)}: {escaped(value)}\n" for name, value in rows)


def picture(file: str, description: str) -> str:
    """Return a picture that lies beside the document."""
    return f"![{escaped(description)}]({file})\n"


def sheet(table: Sheet) -> str:
    """Return a table below its title, the best in bold."""
    rule = ["---"] * table.texts + ["---:"] * (len(table.head) - table.texts)
    rows = [
        [
            f"**{escaped(cell)}**" if (row, column) in table.best else escaped(cell)
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(table.rows)
    ]
    feet = [[escaped(cell) for cell in cells] for cells in table.feet]
    lines = [_line(map(escaped, table.head)), _line(rule), *map(_line, rows), *map(_line, feet)]
    note = f"\n{escaped(table.note)}\n" if table.note else ""
    return f"{heading(table.title)}\n" + "".join(lines) + note


def document(parts: Sequence[str]) -> str:
    """Return the parts with an empty line between them."""
    return "\n".join(parts)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
