"""The view of several runs: a table with one row selected, for a terminal of some size. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from slurm.runs.watching.drawing import cut, key_line
from slurm.status.layout import Line

KEYS = (("↑ ↓", "select"), ("Enter", "open"), ("q", "quit"))

#: Lines of a terminal that the rows, their title and the keys need before the sum gets any.
_LEAST = 6


def table_view(blocks: Sequence[Sequence[Line]], selected: int, width: int, height: int) -> Group:
    """Draw a table. What does not fit is left out: rows far from the selected one, on a low terminal the sum.

    blocks    the title, each row with its reason, the sum, as `layout.blocks` gives them
    selected  number of the row that is highlighted
    """
    title, *rows, foot = blocks
    if height < len(foot) + _LEAST:
        foot = ()
    room = max(0, height - len(title) - len(foot) - 1)
    body = _body(rows, selected, width, room)
    filling = [Text()] * (room - len(body))
    head, tail = ([_text(line, width) for line in lines] for lines in (title, foot))
    return Group(*head, *body, *filling, *tail, cut(key_line(KEYS), width))


def _body(rows: Sequence[Sequence[Line]], selected: int, width: int, room: int) -> list[Text]:
    """As many lines as have room, with the selected row in the middle where there are others around it."""
    if not rows:
        return []
    lines = [line for row in rows for line in row]
    position = sum(len(row) for row in rows[:selected])
    before = max(0, room - len(rows[selected])) // 2
    top = max(0, min(position - before, len(lines) - room))
    shown = enumerate(lines[top : top + room], top)
    return [_text(line, width, is_selected=number == position) for number, line in shown]


def _text(line: Line, width: int, is_selected: bool = False) -> Text:
    text = Text.assemble(*line, style="reverse" if is_selected else "", no_wrap=True, overflow="crop")
    # Not with an ellipsis: each cell of a table ends with a gap that may be cut.
    text.truncate(width, overflow="crop", pad=is_selected)
    return text
