"""Where the time of a run went: from its first submission to its last end, every second once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
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
    starting  from the creation of a process to the end of its first step; all of a start that made none
    waiting   from a submission, or from the end of a start that goes on in its job, to the next start
    away      between two starts, while nobody is known to have asked for the next one
    """

    training: float = 0.0
    repeated: float = 0.0
    saving: float = 0.0
    starting: float = 0.0
    waiting: float = 0.0
    away: float = 0.0

    @property
    def total(self) -> float:
        seconds: float = sum(asdict(self).values())
        return seconds

    @property
    def allocated(self) -> float:
        """Seconds in which the run held its hosts."""
        return self.training + self.repeated + self.saving + self.starting

    @property
    def share(self) -> float:
        """The share of training in what was allocated, from 0 to 1; 0 for a run that has not begun."""
        return self.training / self.allocated if self.allocated else 0.0

    def __add__(self, other: Goodput) -> Goodput:
        return Goodput(**{name: getattr(self, name) + getattr(other, name) for name in Goodput.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time, in seconds since 1970, and which part of Goodput it belongs to."""

    kind: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTime:
    """One start and the time before it since the start before; times in seconds since 1970.

    ready  when its first step was done; its end where it made none
    spent  what its seconds were for; waiting and away are those before it
    saves  when training stood still for a checkpoint, as begin and end
    """

    attempt: int
    begin: float
    ready: float
    end: float
    spent: Goodput
    saves: tuple[tuple[float, float], ...] = ()

    def spans(self) -> Iterator[Span]:
        """Yield the stretches of this start in their order, for a time line.

        When steps were repeated is known only as a share: the last ones were.
        """
        queued = self.begin - self.spent.waiting
        lost = self.end - self.spent.repeated
        spans = [
            Span(kind="away", begin=queued - self.spent.away, end=queued),
            Span(kind="waiting", begin=queued, end=self.begin),
            Span(kind="starting", begin=self.begin, end=self.ready),
            Span(kind="training", begin=self.ready, end=lost),
            Span(kind="repeated", begin=lost, end=self.end),
            *(Span(kind="saving", begin=begin, end=end) for begin, end in self.saves),
        ]
        yield from (span for span in spans if span.end > span.begin)


class _Saves:
    """The events of saves, found by their times."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self._events = sorted(
            (save for save in events if "time" in save), key=lambda save: float(save["time"])
        )
        self._times = [save["time"] for save in self._events]

    def stalls(self, ready: float, end: float) -> tuple[tuple[float, float], ...]:
        """When training stood still: before the file was written, which the event tells the end of."""
        spans: list[tuple[float, float]] = []
        for save in self._events[bisect_left(self._times, ready) : bisect_right(self._times, end)]:
            length = save.get("stall_s", 0.0) + save.get("waited_s", 0.0)
            begin = max(save["time"] - save.get("write_s", 0.0) - length, spans[-1][1] if spans else ready)
            spans.append((begin, begin + length))
        return tuple(spans)


def goodput(run: RunDir, now: float) -> Goodput:
    """Account for a run's time; `now` as in timeline."""
    return sum((each.spent for each in timeline(run, now)), Goodput())


def timeline(run: RunDir, now: float) -> list[AttemptTime]:
    """Account for every start of a run, oldest first.

    now  seconds since the epoch: the end of a start that is under way. Of one that was killed, the end is
         its last sign of life, and the rest counts as time before the next one.
    """
    saves = [line for line in read_json_lines(run.events) if line.get("event") == "save"]
    times = (line.get("time") for line in read_json_lines(run.submissions))
    submitted = [time for time in times if isinstance(time, int | float)]
    return account(read_attempts(run), saves, submitted, now)


def account(
    attempts: Sequence[Mapping[str, Any]],
    saves: Sequence[Mapping[str, Any]],
    submitted: Sequence[float],
    now: float,
) -> list[AttemptTime]:
    """The same of what a run's files say.

    attempts   lines of the ledger; those that are damaged are left out
    saves      events of checkpoints
    submitted  times of submissions
    """
    lines = [line for line in attempts if _is_whole(line)]
    stalls = _Saves(saves)
    found: list[AttemptTime] = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else None
        before = (lines[number - 1], found[-1].end) if found else None
        begin = _begin(line, found[-1].end if found else 0.0)
        found.append(_account(line, begin, following, _before(begin, line, before, submitted), stalls, now))
    return found


def _is_whole(line: Mapping[str, Any]) -> bool:
    """Whether a line has what is reckoned with, and numbers there."""
    numbers = ("attempt", "process_start", "time_start", "time_end", "first_step_after_start_s")
    steps = ("first_step", "last_step")
    return "time_start" in line and all(
        isinstance(line.get(name, 0), int | float) for name in numbers + steps
    )


def _begin(line: Mapping[str, Any], earlier_end: float) -> float:
    """When a start's process was created, which imports before it writes its line; after the start before."""
    started: float = line["time_start"]
    created: float = line.get("process_start", started)
    return min(started, max(earlier_end, created))


def _before(
    begin: float,
    line: Mapping[str, Any],
    before: tuple[Mapping[str, Any], float] | None,
    submitted: Sequence[float],
) -> Goodput:
    """The time between a start and the end of the one before it."""
    if before is None:
        return Goodput(waiting=max(0.0, begin - min(submitted, default=begin)))
    earlier, end = before
    gap = max(0.0, begin - end)
    if _is_put_back(earlier, line):
        return Goodput(waiting=gap)
    asked = max((time for time in submitted if earlier["time_start"] < time <= begin), default=begin)
    waiting = min(gap, begin - asked)
    return Goodput(waiting=waiting, away=gap - waiting)


def _is_put_back(earlier: Mapping[str, Any], line: Mapping[str, Any]) -> bool:
    """Whether the same job has started again, out of a scheduler's queue or in its place."""
    same_job = line.get("job_id") is not None and line.get("job_id") == earlier.get("job_id")
    return bool(same_job and line.get("restart", 0) >= earlier.get("restart", 0))


def _account(
    line: Mapping[str, Any],
    begin: float,
    following: Mapping[str, Any] | None,
    before: Goodput,
    saves: _Saves,
    now: float,
) -> AttemptTime:
    limit = following["time_start"] if following else line.get("time_end", now)
    # One that was replaced while it hung ends, for the run, with the start of the other.
    end = max(begin, min(line.get("time_end", limit), limit))
    start = line.get("first_step_after_start_s")
    ready = end if start is None else min(line["time_start"] + start, end)
    stalls = saves.stalls(ready, end)
    saving = min(sum(until - since for since, until in stalls), end - ready)
    busy = end - ready - saving
    repeated = busy * _lost_share(line, following)
    spent = Goodput(training=busy - repeated, repeated=repeated, saving=saving, starting=ready - begin)
    return AttemptTime(
        attempt=line["attempt"], begin=begin, ready=ready, end=end, spent=before + spent, saves=stalls
    )


def _lost_share(line: Mapping[str, Any], following: Mapping[str, Any] | None) -> float:
    """The share of a start's steps that the next one does again."""
    first, last = line.get("first_step", 0), line.get("last_step", 0)
    resumed = last if following is None else following.get("first_step", last)
    return min(1.0, max(0, last - resumed) / (last - first)) if last > first else 0.0
