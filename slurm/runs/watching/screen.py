"""One run on the whole terminal, until a key ends it."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group

from slurm.runs import cancel_requeue
from slurm.runs.watching.live_view import Ending, LiveView
from slurm.runs.watching.reading import RunReader, Snapshot
from slurm.runs.watching.view import KEYS, KEYS_OF_OPENED, view
from slurm.status.rows import RunStatus
from toolkit.errors import StkError
from toolkit.run.run_dir import RunDir

#: A function that returns the current status of the run.
Look = Callable[[], RunStatus]


class Screen(LiveView):
    """The view of one run, and the actions of its keys.

    look            reads the state of the run
    until_finished  whether the view ends when the run is not live any more
    is_opened       whether it was opened from the overview; Esc then returns to it
    """

    _snapshot: Snapshot

    def __init__(
        self, run: RunDir, look: Look, interval_s: float, until_finished: bool, is_opened: bool = False
    ) -> None:
        super().__init__(interval_s)
        self._run = run
        self._look = look
        self._until_finished = until_finished
        self._is_opened = is_opened
        self._reader = RunReader(run)
        self._message = ""
        self._asks_to_cancel = False

    def refresh(self) -> Ending | None:
        self._snapshot = self._reader.read(self._look())
        return Ending.QUIT if self._until_finished and not self._snapshot.row.may_live else None

    def draw(self, width: int, height: int) -> Group:
        keys = KEYS_OF_OPENED if self._is_opened else KEYS
        return view(self._snapshot, width, height, self._message, keys)

    def press(self, key: str) -> Ending | None:
        row = self._snapshot.row
        if self._asks_to_cancel:
            self._asks_to_cancel = False
            self._message = self._do(cancel_requeue.cancel, row) if key == "y" else ""
            return None
        if key == "c":
            self._asks_to_cancel = True
            self._message = f"cancel {row.run_id}? y / n"
        elif key == "r":
            self._message = self._do(cancel_requeue.requeue, row)
        elif key == "escape" and self._is_opened:
            return Ending.QUIT
        return {"q": Ending.QUIT, "l": Ending.LOG, "stopped": Ending.STOPPED}.get(key)

    def _do(self, act: Callable[[RunDir, RunStatus], str], row: RunStatus) -> str:
        try:
            return act(self._run, row)
        except (StkError, OSError) as error:
            return str(error)
