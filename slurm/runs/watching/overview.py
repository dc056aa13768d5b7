"""A table of runs on the whole terminal; a key opens the selected run or ends the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group
from rich.text import Text

from slurm.runs.watching.drawing import cut, key_line
from slurm.runs.watching.live_view import Ending, LiveView
from slurm.status.rows import RunStatus
from slurm.status.table import Line, blocks

#: Keys that move the selection, with the number of rows.
_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}
KEYS = (("↑ ↓", "select"), ("Enter", "open"), ("q", "quit"))

#: Lines of the terminal for rows, title and keys; the sum is shown only if there are more.
_LEAST = 6


class Overview(LiveView):
    """The table of runs, and the actions of its keys.

    look   reads the states of the runs
    """

    def __init__(
        self, look: Callable[[], Sequence[RunStatus]], interval_s: float, until_finished: bool
    ) -> None:
        super().__init__(interval_s, until_finished)
        self._look = look
        self.rows: Sequence[RunStatus] = ()
        self._number = 0
        self._blocks: list[list[Line]] = []
        self._width: int | None = None

    @property
    def selected(self) -> RunStatus | None:
        """The run of the highlighted row; None if there is no run."""
        return self.rows[self._number] if self.rows else None

    def refresh(self) -> bool:
        before = self.selected
        self.rows = self._look()
        # Compared by folder, because runs in different places may have the same id.
        folders = [each.run_dir for each in self.rows]
        if before is not None and before.run_dir in folders:
            self._number = folders.index(before.run_dir)
        else:
            self._number = self._within(self._number)
        self._width = None
        return any(row.may_live for row in self.rows)

    def _within(self, number: int) -> int:
        return max(0, min(number, len(self.rows) - 1))

    def draw(self, width: int, height: int) -> Group:
        if width != self._width:
            # Only once for each refresh, not for each key: thousands of rows are slow.
            self._blocks, self._width = list(blocks(self.rows, width)), width
        return table_view(self._blocks, self._number, width, height)

    def press(self, key: str) -> Ending | None:
        self._number = self._within(self._number + _MOVES.get(key, 0))
        if key == "enter" and self.rows:
            return Ending.OPENED
        return {"q": Ending.QUIT, "stopped": Ending.STOPPED}.get(key)


def table_view(blocks: Sequence[Sequence[Line]], selected: int, width: int, height: int) -> Group:
    """Draw a table; if it does not fit, without rows far from the selected one, and perhaps without the sum.

    blocks    title, rows with reasons, and sum, from `layout.blocks`
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
    """Return the lines that fit, with the selected row in the middle if possible."""
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
    # Cropped without an ellipsis, because each cell ends with a gap.
    text.truncate(width, overflow="crop", pad=is_selected)
    return text
