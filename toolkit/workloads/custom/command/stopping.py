"""Why and when a command is asked to leave: signals, a stop file that all ranks see, a failed rank."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from types import FrameType
from typing import Any

from toolkit.files import create_once, read_object
from toolkit.reliability.stop import Stop
from toolkit.run.disk_reserve import give_up_half
from toolkit.run.failure.classes import PEER_LOST
from toolkit.run.failure.records import first_failure
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.workloads.custom.command.program import Program
from toolkit.workloads.custom.command.recorded import is_saving

#: A command is asked to leave this many seconds before its job ends: an estimate for a step and a save.
LEAD_S = 30.0
#: Seconds between the early warning and SIGTERM.
_HEAD_START_S = 15.0
#: Seconds between SIGTERM and SIGKILL, so that the run can be requeued before the job ends.
KILL_AFTER_S = 2 * LEAD_S
#: Most seconds between SIGTERM and SIGKILL if a script saves. A save that takes longer hangs.
SAVE_S = 1800.0
#: Seconds between SIGTERM and SIGKILL after another rank has failed, also if a script saves: fewer than the
#: launcher gives this process.
_KILL_AFTER_FAILURE_S = 12.0
#: Seconds between two looks for a failure of another rank.
_FAILURE_S = 1.0
_SIGNALS = (signal.SIGUSR2, signal.SIGTERM, signal.SIGINT)


class Caught:
    """Records the signals that this process receives, and calls the previous handlers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._before: dict[int, Any] = {}

    def install(self) -> None:
        """Catch signals from now on; only in the main thread."""
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.numbers.append(number)
        if callable(before := self._before[number]):
            before(number, frame)


class Leaving:
    """Asks a command to leave when any rank has a reason, or has failed.

    has_failed_peer   whether another rank has recorded why it failed
    """

    def __init__(self, run: RunDir, world: World, stop: Stop, caught: Caught) -> None:
        self._run = run
        self._world = world
        self._path = run.stop_request(world.nonce)
        self._looked = -_FAILURE_S
        self._stop = stop
        self._caught = caught
        self._passed_on = 0
        self._warned: float | None = None
        self._asked: float | None = None
        self._deadline = 0.0
        self.attempt = 0
        self.why = ""
        self.has_failed_peer = False

    @property
    def is_asked(self) -> bool:
        """Whether there is a reason to leave."""
        return bool(self.why)

    @property
    def has_warned(self) -> bool:
        """Whether the early warning was passed on to the command."""
        return self._warned is not None

    def is_over(self) -> bool:
        """Return whether the time in which a command can save is over. A script that saves gets more."""
        now = time.monotonic()
        if self._asked is None or now <= self._deadline:
            return False
        # At a time limit the rest of the job's time is for the requeue; a save with a failed rank hangs.
        may_save = self.why not in ("time_limit", PEER_LOST) and now - self._asked <= SAVE_S
        if may_save and is_saving(self._run, self.attempt):
            self._deadline = now + KILL_AFTER_S
            return False
        return True

    def look(self) -> bool:
        """Return whether this rank or another has a reason to leave; tell the others of a new one."""
        if not self.why and (own := self._stop.reason_to_stop(LEAD_S, is_measured=False)) is not None:
            self.request(own)
        if not self.why and (found := read_object(self._path)):
            self.why = str(found.get("why", "requested"))
        if self._world.size > 1 and time.monotonic() - self._looked > _FAILURE_S:
            self._looked = time.monotonic()
            # A network file system may not answer for a moment.
            with suppress(OSError, ValueError):
                found = first_failure(self._run, self._world.nonce) or {}
                # If others have only lost a peer, the cause may still come, even from this rank.
                self.has_failed_peer = found.get("class", PEER_LOST) != PEER_LOST
        if self.has_failed_peer:
            self.why = self.why or PEER_LOST
        return bool(self.why)

    def request(self, why: str) -> None:
        """Ask the commands of all ranks to leave."""
        self.why = self.why or why
        try:
            self._write(why)
        except OSError:
            # A full disk: the reserve has room for this, and for how the ranks end. Without the file, the
            # command of this rank must be asked all the same.
            give_up_half(self._run)
            with suppress(OSError):
                self._write(why)

    def _write(self, why: str) -> None:
        self._path.parent.mkdir(exist_ok=True)
        create_once(self._path, f'{{"why": "{why}", "rank": {self._world.rank}}}\n')

    def pass_on(self, program: Program) -> None:
        """Send the signal that is due: the early warning when it arrives, then SIGTERM, finally SIGKILL."""
        now = time.monotonic()
        new, self._passed_on = self._caught.numbers[self._passed_on :], len(self._caught.numbers)
        if signal.SIGUSR2 in new:
            self._warned = now
            program.send(signal.SIGUSR2)
        if not self.look():
            return
        if self._asked is None:
            has_signal = signal.SIGTERM in self._caught.numbers or signal.SIGINT in self._caught.numbers
            if has_signal or self._warned is None or now - self._warned > _HEAD_START_S:
                patience_s = _KILL_AFTER_FAILURE_S if self.why == PEER_LOST else KILL_AFTER_S
                self._asked, self._deadline = now, now + patience_s
                program.send(signal.SIGTERM)
        # A scheduler that has sent SIGTERM kills the command itself, when the time that it grants is over.
        elif self.is_over() and not (self._world.job and signal.SIGTERM in self._caught.numbers):
            program.send(signal.SIGKILL)
