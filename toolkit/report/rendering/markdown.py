"""A report as Markdown, for a README, an issue or a mail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from toolkit.report.blocks import Block, Document, Figure, Section, Table, Text

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


def markdown(document: Document) -> str:
    """Return title, facts and all sections that a page does not fold. Pictures are files beside it."""
    parts = [_heading(document.title, 1)]
    state = (("state", document.state),) if document.state else ()
    if facts := (*state, *document.facts):
        parts.append("".join(f"- {escaped(name)}: {escaped(value)}\n" for name, value in facts))
    parts += [part for section in document.sections if not section.folded for part in _section(section)]
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Text that Markdown shows unchanged, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _heading(title: str, level: int = 2) -> str:
    return f"{'#' * level} {escaped(title)}\n"


def _section(section: Section) -> Iterator[str]:
    parts = [part for block in section.blocks for part in _block(block)]
    titled = any(isinstance(block, Table) for block in section.blocks)
    if parts and not titled and section.title:
        yield _heading(section.title)
    yield from parts


def _block(block: Block) -> Iterator[str]:
    match block:
        case Table() if block.is_too_wide:
            yield from (part for each in block.instead for part in _block(each))
        case Table():
            yield table(block)
        case Figure() if block.name:
            yield f"![{escaped(block.about)}]({block.name}.png)\n"
        case Text() if not block.title:
            yield f"{escaped(block.text)}\n"


def table(block: Table) -> str:
    """Return a table below its title, with the best cells in bold."""
    rule = ["---"] * block.texts + ["---:"] * (len(block.head) - block.texts)
    rows = [
        [
            f"**{escaped(cell)}**" if (row, column) in block.best else escaped(cell)
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(block.rows)
    ]
    feet = [[escaped(cell) for cell in cells] for cells in block.feet]
    lines = [_line(map(escaped, block.head)), _line(rule), *map(_line, rows), *map(_line, feet)]
    note = f"\n{escaped(block.note)}\n" if block.note else ""
    return f"{_heading(block.title)}\n" + "".join(lines) + note


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
