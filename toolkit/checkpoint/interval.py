"""How often to save: from what a save costs and how often a run is interrupted.

A save every T seconds costs c/T of the time and an interruption loses T/2 on average, so that
T = sqrt(2 * c * MTBF) costs least (Young 1974; Daly 2006 refines it where c is not small beside
the MTBF, which the bounds here exclude).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

#: What to expect of a run of which nothing is known: one interruption a day.
PRIOR_S = 24 * 3600.0

#: Saves may cost no more than this part of the time.
OVERHEAD = 0.01

#: A save in the background slows training down by about this part of the time that it takes to write.
WRITE_SHARE = 0.03

#: Bounds of the interval: not to keep a file system busy with tiny runs, nor to lose more than half an
#: hour where interruptions are rare.
SHORTEST_S, LONGEST_S = 15.0, 1800.0

#: Until the first save has been measured, and after one that failed.
FIRST_S = 60.0

#: Ends that lose no step, because a save came first.
_ORDERLY = ("finished", "preempted", "time_limit", "cancelled", "requested", "stop on another rank")


def cost_s(stall_s: float, write_s: float) -> float:
    """Seconds of training that a save costs: the copy, and a small share of the writing without pauses."""
    return stall_s + WRITE_SHARE * write_s


def mtbf_s(attempts: Iterable[Mapping[str, Any]], running_s: float = 0.0) -> float:
    """Mean time between interruptions that lose steps, in seconds of running.

    attempts   lines of attempts.jsonl without that of the present start
    running_s  how long the present start has gone on

    The prior counts as one day with one interruption, so that the first few say little.
    """
    seconds, interruptions = PRIOR_S + running_s, 1
    for attempt in attempts:
        if "time_end" in attempt:
            seconds += max(0.0, attempt["time_end"] - attempt["time_start"])
        interruptions += not _is_orderly(attempt)
    return seconds / interruptions


def _is_orderly(attempt: Mapping[str, Any]) -> bool:
    why = str(attempt.get("why", "killed"))
    return why in _ORDERLY or why.startswith("SIG")


def interval_s(stall_s: float, write_s: float, mtbf_s: float) -> float:
    """Seconds between two saves that cost least, within the bounds; at most OVERHEAD of the time."""
    cost = cost_s(stall_s, write_s)
    best = math.sqrt(2 * cost * mtbf_s)
    # The disk gets as long a rest as it was busy.
    least = max(SHORTEST_S, cost / OVERHEAD, 2 * write_s)
    return max(least, min(best, LONGEST_S))


class Clock:
    """When the next save by the clock is due.

    every_minutes  what the user asks for; None: what is best, as measured
    note           told when the interval gets known or changes much: (event, **facts)
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
        """A save of whatever cause begins: the next one is counted from here."""
        self._last = self._now()

    def failed(self) -> None:
        """It came to nothing: soon another one."""
        self._retry = True

    def saved(self, stall_s: float, write_s: float, attempts: Iterable[Mapping[str, Any]]) -> None:
        """It is done and took so long: choose the interval anew."""
        self._retry = False
        self._stalls_s.append(stall_s)
        if self._fixed_s is not None:
            return
        # Not the last one alone: the first save of a start pays for fresh memory.
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
