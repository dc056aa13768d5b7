"""The interval of saves: from the cost of a save and the frequency of interruptions.

A save every T seconds costs c/T of the time and an interruption loses T/2 on average, so that
T = sqrt(2 * c * MTBF) costs least (Young 1974; Daly 2006 refines it if c is not small compared to
the MTBF, which the bounds here exclude).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from statistics import median

from toolkit.run.attempts.records import AttemptRecord

#: Prior for a run without a history: one interruption a day.
PRIOR_S = 24 * 3600.0

#: Largest share of the time that saves may cost.
OVERHEAD = 0.01

#: A background save slows training down by this share of its writing time.
WRITE_SHARE = 0.03

#: Bounds of the interval: the file system is not kept busy by tiny runs, and at most half an hour is lost
#: even if interruptions are rare.
SHORTEST_S, LONGEST_S = 15.0, 1800.0

#: Interval until the first save has been measured, and after a failed save.
FIRST_S = 60.0

#: Reasons for which attempts end without losing a step, because the run was saved first.
_ORDERLY = ("finished", "preempted", "time_limit", "cancelled", "requested", "saved", "stop on another rank")


def cost_s(stall_s: float, write_s: float) -> float:
    """Training time that a save costs, in seconds: the copy, and a small share of the writing."""
    return stall_s + WRITE_SHARE * write_s


def mtbf_s(attempts: Iterable[AttemptRecord], running_s: float = 0.0) -> float:
    """Mean time between interruptions that lose steps, in seconds of running.

    attempts   all but the current one
    running_s  duration of the current attempt so far

    The prior counts as one day with one interruption, so that the first attempts have little weight.
    """
    seconds, interruptions = PRIOR_S + running_s, 1
    for attempt in attempts:
        seconds += attempt.seconds
        why = attempt.why or "killed"
        if why not in _ORDERLY and not why.startswith("SIG"):
            interruptions += 1
    return seconds / interruptions


def interval_s(stall_s: float, write_s: float, mtbf_s: float) -> float:
    """Seconds between two saves with the least expected cost, within the bounds and OVERHEAD."""
    cost = cost_s(stall_s, write_s)
    best = math.sqrt(2 * cost * mtbf_s)
    # The disk rests at least as long as it was busy.
    least = max(SHORTEST_S, cost / OVERHEAD, 2 * write_s)
    return max(least, min(best, LONGEST_S))


class SaveTimer:
    """Decides when the next timed save is due.

    every_minutes  the interval that the user sets; None to compute the best one from measurements
    note           called when the interval is first known or changes much: (event, **facts)
    """

    def __init__(
        self,
        every_minutes: float | None,
        note: Callable[..., None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fixed_s = None if every_minutes is None else 60 * every_minutes
        self._note = note
        self._now = now
        self._started = self._last = now()
        self._noted_s: float | None = None
        self._stalls_s: deque[float] = deque(maxlen=5)
        self._retry = False
        self.seconds = FIRST_S if self._fixed_s is None else self._fixed_s

    def is_due(self) -> bool:
        wait = min(FIRST_S, self.seconds) if self._retry else self.seconds
        return self._now() - self._last >= wait

    def begun(self) -> None:
        """Restart the timer: a save begins, for any reason."""
        self._last = self._now()

    def failed(self) -> None:
        """The save failed: try again soon."""
        self._retry = True

    def saved(self, stall_s: float, write_s: float, attempts: Iterable[AttemptRecord]) -> None:
        """The save is done: compute the interval again from its measured times."""
        self._retry = False
        self._stalls_s.append(stall_s)
        if self._fixed_s is not None:
            return
        # Not only the last save: the first one of an attempt is slower, because its memory is new.
        typical_s = median(self._stalls_s)
        between_s = mtbf_s(attempts, self._now() - self._started)
        self.seconds = interval_s(typical_s, write_s, between_s)
        if self._noted_s is None or not 0.67 < self.seconds / self._noted_s < 1.5:
            self._noted_s = self.seconds
            self._note(
                "save_interval",
                seconds=round(self.seconds, 1),
                stall_s=round(typical_s, 4),
                write_s=round(write_s, 4),
                mtbf_s=round(between_s),
                overhead=round(cost_s(typical_s, write_s) / self.seconds, 5),
            )
