"""Several runs on the whole terminal, one of them selected, until a key opens it or ends the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Group

from slurm.runs.watching.live_view import Ending, LiveView
from slurm.runs.watching.table_view import table_view
from slurm.status.layout import Line, blocks
from slurm.status.rows import RunStatus

#: How many rows a key moves the selection.
_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}


class Overview(LiveView):
    """The table of runs, and what its keys do.

    look            where the runs stand
    until_finished  whether the view ends when no run is live any more
    """

    def __init__(
        self, look: Callable[[], Sequence[RunStatus]], interval_s: float, until_finished: bool
    ) -> None:
        super().__init__(interval_s)
        self._look = look
        self._until_finished = until_finished
        self.rows: Sequence[RunStatus] = ()
        self._number = 0
        self._blocks: list[list[Line]] = []
        self._width: int | None = None

    @property
    def selected(self) -> RunStatus | None:
        """The run whose row is highlighted; None where there is no run."""
        return self.rows[self._number] if self.rows else None

    def refresh(self) -> Ending | None:
        before = self.selected
        self.rows = self._look()
        self._number = self._number_of(before)
        self._width = None
        has_ended = self._until_finished and not any(row.is_live for row in self.rows)
        return Ending.QUIT if has_ended else None

    def _number_of(self, row: RunStatus | None) -> int:
        """The row of a run. If the run is gone, the row that took its place."""
        # By the folder and not by the id: runs in different places may have the same id.
        folders = [each.run_dir for each in self.rows]
        if row is not None and row.run_dir in folders:
            return folders.index(row.run_dir)
        return self._within(self._number)

    def _within(self, number: int) -> int:
        return max(0, min(number, len(self.rows) - 1))

    def draw(self, width: int, height: int) -> Group:
        if width != self._width:
            # Once for each reading and not for each key: thousands of rows take long.
            self._blocks, self._width = list(blocks(self.rows, width)), width
        return table_view(self._blocks, self._number, width, height)

    def press(self, key: str) -> Ending | None:
        self._number = self._within(self._number + _MOVES.get(key, 0))
        if key == "enter" and self.rows:
            return Ending.OPENED
        return {"q": Ending.QUIT, "stopped": Ending.STOPPED}.get(key)
