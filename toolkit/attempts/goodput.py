"""Where the time of a run went: from its first start to its last end, every second once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from toolkit.attempts.ledger import read_attempts
from toolkit.files import read_json_lines
from toolkit.rundir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Seconds of a run by what they were for; they add up to the whole.

    training  steps that count, with their evaluations
    repeated  steps that were lost with a start and done again
    saving    training stood still for a checkpoint
    starting  from the start of a process to the end of its first step; all of a start that made none
    away      between two starts: in the queue, or waiting for a host
    """

    training: float = 0.0
    repeated: float = 0.0
    saving: float = 0.0
    starting: float = 0.0
    away: float = 0.0

    @property
    def total(self) -> float:
        seconds: float = sum(asdict(self).values())
        return seconds

    @property
    def share(self) -> float:
        """The share of training, from 0 to 1; 0 for a run that has not begun."""
        return self.training / self.total if self.total else 0.0


def goodput(run: RunDir, now: float) -> Goodput:
    """Account for a run's time.

    now  seconds since the epoch: the end of a start that is under way. Of one that was killed, the end is
         its last sign of life, and the rest counts as away.
    """
    attempts = [line for line in read_attempts(run) if "time_start" in line]
    saves = [line for line in read_json_lines(run.events) if line.get("event") == "save"]
    parts = [
        _account(line, following, saves, now)
        for line, following in itertools.zip_longest(attempts, attempts[1:])
    ]
    return Goodput(**{name: sum(getattr(part, name) for part in parts) for name in Goodput.__slots__})


def _account(
    line: dict[str, Any], following: dict[str, Any] | None, saves: Sequence[dict[str, Any]], now: float
) -> Goodput:
    """The time of one start, and that until the one after it."""
    begin = line["time_start"]
    limit = following["time_start"] if following else line.get("time_end", now)
    # One that was replaced while it hung ends, for the run, with the start of the other.
    end = max(begin, min(line.get("time_end", limit), limit))
    away = max(0.0, limit - end)
    if (start := line.get("first_step_after_start_s")) is None:
        return Goodput(starting=end - begin, away=away)
    first = min(begin + start, end)
    stalls = sum(
        save.get("stall_s", 0.0) + save.get("waited_s", 0.0)
        for save in saves
        if first <= save.get("time", 0.0) <= end
    )
    saving = min(stalls, end - first)
    busy = end - first - saving
    repeated = busy * _lost_share(line, following)
    return Goodput(
        training=busy - repeated, repeated=repeated, saving=saving, starting=first - begin, away=away
    )


def _lost_share(line: dict[str, Any], following: dict[str, Any] | None) -> float:
    """The share of a start's steps that the next one does again."""
    first, last = line.get("first_step", 0), line.get("last_step", 0)
    resumed = last if following is None else following.get("first_step", last)
    return min(1.0, max(0, last - resumed) / (last - first)) if last > first else 0.0
