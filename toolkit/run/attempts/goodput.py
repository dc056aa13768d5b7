"""Time of a run: from its first submission to its last end, each second counted once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from toolkit.files import read_json_lines
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.events import SaveEvent, save_events
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Seconds of a run by purpose; they add up to the total.

    training  steps that count, with their evaluations
    finishing after the training: the test, the report; all after the start if no step was left to do
    repeated  steps that were lost and done again; all of a command without steps that starts over
    saving    pauses of training for checkpoints
    starting  from the creation of a process to the end of its first step; to its end if it did not get there
    waiting   from a submission, or from the end of an attempt whose job restarts, to the next start
    away      between two attempts, until the next one was submitted
    """

    training: float = 0.0
    repeated: float = 0.0
    saving: float = 0.0
    starting: float = 0.0
    finishing: float = 0.0
    waiting: float = 0.0
    away: float = 0.0

    @property
    def total(self) -> float:
        seconds: float = sum(asdict(self).values())
        return seconds

    @property
    def allocated(self) -> float:
        """Seconds in which the run held its hosts."""
        return self.training + self.repeated + self.saving + self.starting + self.finishing

    @property
    def share(self) -> float:
        """The share of training in the allocated time, from 0 to 1; 0 for a run that has not begun."""
        return self.training / self.allocated if self.allocated else 0.0

    def __add__(self, other: Goodput) -> Goodput:
        return Goodput(**{name: getattr(self, name) + getattr(other, name) for name in Goodput.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time interval, in seconds since 1970; `kind` is its field of Goodput."""

    kind: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTime:
    """One attempt, with the time between the previous attempt and its start; times in seconds since 1970.

    ready  end of its first step; without one, when it was ready to finish, or its end
    spent  its seconds by purpose; waiting and away are the time before it
    saves  pauses of training for checkpoints, as begin and end
    """

    attempt: int
    begin: float
    ready: float
    end: float
    spent: Goodput
    saves: tuple[tuple[float, float], ...] = ()

    def spans(self) -> Iterator[Span]:
        """Yield the intervals of this attempt in order, then its saves, for a timeline.

        Only the share of repeated steps is known: they are placed last.
        """
        queued = self.begin - self.spent.waiting
        trained = self.end - self.spent.finishing
        lost = trained - self.spent.repeated
        spans = [
            Span(kind="away", begin=queued - self.spent.away, end=queued),
            Span(kind="waiting", begin=queued, end=self.begin),
            Span(kind="starting", begin=self.begin, end=self.ready),
            Span(kind="training", begin=self.ready, end=lost),
            Span(kind="repeated", begin=lost, end=trained),
            Span(kind="finishing", begin=trained, end=self.end),
            *(Span(kind="saving", begin=begin, end=end) for begin, end in self.saves),
        ]
        yield from (span for span in spans if span.end > span.begin)


def spans(
    attempts: Sequence[AttemptRecord], submitted: Sequence[float], now: float, *, is_live: bool = True
) -> tuple[Span, ...]:
    """The time of a run from its first submission on, oldest first; saves are parts of training.

    attempts   those without a start time are left out
    submitted  times of submissions
    now        end of the timeline: the current time for a live run, else its last sign of life
    """
    accounts = account(attempts, (), submitted, now)
    found = [span for each in accounts for span in each.spans()]
    end = accounts[-1].end if accounts else min(submitted, default=now)
    if now > end and (is_live or not accounts):
        found.append(Span(kind="waiting", begin=end, end=now))
    return tuple(found)


def timeline(run: RunDir, now: float) -> list[AttemptTime]:
    """Return the time of each attempt of a run, oldest first.

    now  seconds since the epoch: the end of an attempt in progress. A killed attempt ends with its last sign
         of life; the time after that counts as time before the next attempt.
    """
    times = (line.get("time") for line in read_json_lines(run.submissions))
    submitted = [time for time in times if isinstance(time, int | float)]
    return account(read_attempts(run), save_events(run), submitted, now)


def account(
    attempts: Sequence[AttemptRecord], saves: Iterable[SaveEvent], submitted: Sequence[float], now: float
) -> list[AttemptTime]:
    """Return the time of each attempt, oldest first, from the contents of the run's files.

    attempts   those without a start time are left out
    saves      events of checkpoints
    submitted  times of submissions
    """
    known = [each for each in attempts if each.time_start is not None]
    by_time = sorted((save for save in saves if save.time), key=_time)
    found: list[AttemptTime] = []
    for number, each in enumerate(known):
        later = known[number + 1 :]
        before = (known[number - 1], found[-1].end) if found else None
        # The process is created before its imports; at earliest at the previous end.
        created = each.began if each.process_start is None else each.process_start
        begin = min(each.began, max(found[-1].end if found else 0.0, created))
        found.append(_account(each, begin, later, _before(begin, each, before, submitted), by_time, now))
    return found


def _time(save: SaveEvent) -> float:
    return save.time


def _before(
    begin: float,
    attempt: AttemptRecord,
    before: tuple[AttemptRecord, float] | None,
    submitted: Sequence[float],
) -> Goodput:
    """The time between an attempt and the end of the previous one."""
    if before is None:
        return Goodput(waiting=max(0.0, begin - min(submitted, default=begin)))
    earlier, end = before
    gap = max(0.0, begin - end)
    is_same_job = attempt.job_id is not None and attempt.job_id == earlier.job_id
    if is_same_job and attempt.restart >= earlier.restart:
        # Started again, from the queue or in place.
        return Goodput(waiting=gap)
    asked = max((time for time in submitted if earlier.began < time <= begin), default=begin)
    waiting = min(gap, begin - asked)
    return Goodput(waiting=waiting, away=gap - waiting)


def _account(
    attempt: AttemptRecord,
    begin: float,
    later: Sequence[AttemptRecord],
    before: Goodput,
    saves: Sequence[SaveEvent],
    now: float,
) -> AttemptTime:
    # An attempt that was replaced while it hung ends when the other one starts.
    limits = [later[0].began if later else None, attempt.time_end]
    end = max(begin, min((limit for limit in limits if limit is not None), default=now))
    trained = _moment(attempt, attempt.trained_after_start_s, begin, end)
    ready = _moment(attempt, attempt.first_step_after_start_s, begin, trained)
    stalls = _stalls(saves, ready, trained)
    saving = min(sum(until - since for since, until in stalls), trained - ready)
    busy = trained - ready - saving
    repeated = busy * _lost_share(attempt, later)
    spent = Goodput(
        training=busy - repeated,
        repeated=repeated,
        saving=saving,
        starting=ready - begin,
        finishing=end - trained,
    )
    return AttemptTime(
        attempt=attempt.attempt, begin=begin, ready=ready, end=end, spent=before + spent, saves=stalls
    )


def _moment(attempt: AttemptRecord, after_s: float | None, begin: float, end: float) -> float:
    """Return a moment of an attempt; its end if unknown. With a clock set back, it may precede the begin."""
    return end if after_s is None else min(max(begin, attempt.began + after_s), end)


def _stalls(saves: Sequence[SaveEvent], ready: float, end: float) -> tuple[tuple[float, float], ...]:
    """Intervals of the stalls; an event marks the end of the write, so the stall precedes it."""
    spans: list[tuple[float, float]] = []
    for save in saves[bisect_left(saves, ready, key=_time) : bisect_right(saves, end, key=_time)]:
        length = save.stall_s + save.waited_s
        begin = max(save.time - save.write_s - length, spans[-1][1] if spans else ready)
        spans.append((begin, begin + length))
    return tuple(spans)


def _lost_share(attempt: AttemptRecord, later: Sequence[AttemptRecord]) -> float:
    """The share of an attempt's steps that later ones repeat; without known steps all, or none."""
    first, last = attempt.first_step or 0, attempt.last_step or 0
    if last <= first:
        # A command may continue from files that it wrote; earlier versions did not record whether it did.
        starts_over = any(each.resumed is False for each in later)
        is_lost = attempt.first_step is None and not attempt.saved and attempt.wrote is False
        return float(is_lost and starts_over)
    # An attempt that made no step repeated none. The next one may begin at an earlier step.
    steps = (each.first_step for each in later if each.first_step != each.last_step)
    resumed = min((step for step in steps if step is not None), default=last)
    return min(1.0, max(0, last - resumed) / (last - first))
