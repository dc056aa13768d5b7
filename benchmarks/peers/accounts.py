"""The time of a run, split into parts that add up; measured from outside, in the same way for every tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.start import Start
from tools.tool import Step

#: The parts of a run's time, in the order of the tables.
PARTS = ("useful steps", "steps done twice", "saves", "starting", "ending", "Slurm", "a person", "rest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The traces of a run; times in seconds since 1970.

    steps      all steps that were done, in the order of time
    launches   when Slurm began to run the job's script, each time
    gone       when the job was first seen not running, each time
    by_hand    when a person submitted it again, as begin and end of the command
    until      the end of the account
    step_s     nominal seconds of a step
    """

    starts: Sequence[Start]
    steps: Sequence[Step]
    launches: Sequence[float]
    gone: Sequence[float]
    by_hand: Sequence[tuple[float, float]]
    until: float
    step_s: float


@dataclass(slots=True)
class Account:
    """The seconds of each part (PARTS), and the wall time since the first launch."""

    wall: float
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    @property
    def goodput(self) -> float:
        return self.seconds["useful steps"] / self.wall

    @property
    def unaccounted(self) -> float:
        """Return the wall time minus the parts: 0 if they are right."""
        return self.wall - sum(self.seconds.values())


def account(traces: Traces) -> Account:
    """Split the time from the first launch to `until`."""
    begin = traces.launches[0]
    found = Account(traces.until - begin)
    now, best = begin, 0
    for start in sorted(traces.starts, key=lambda each: each.began):
        steps = [step for step in traces.steps if step.start == start.name and step.time <= traces.until]
        if start.began >= traces.until:
            break
        now = _between(traces, now, start.began, found)
        if not steps:
            # A start without steps counts as starting until it ended.
            now = _add(found, "starting", now, _end_without_steps(traces, start))
            continue
        now = _add(found, "starting", now, steps[0].time - traces.step_s)
        new = [step for step in steps if step.step > best]
        _training(found, start, len(new), len(steps), steps[-1].time - now, traces.step_s)
        best, now = max(best, steps[-1].step), steps[-1].time
    _between(traces, now, traces.until, found)
    return found


def _between(traces: Traces, since: float, until: float, found: Account) -> float:
    """Account for the time between two starts; return the time at which the next one began to start."""
    launch = max((time for time in traces.launches if since < time <= until), default=None)
    gone = min((time for time in traces.gone if since < time <= until), default=None)
    if launch is None and gone is None:
        # The ranks were started again in the same job, or the account ends. Before the first start, the
        # time is for the launch itself.
        part = "starting" if since == traces.launches[0] else "ending"
        return _add(found, part, since, until)
    queued = gone if gone is not None else since
    _add(found, "ending", since, queued)
    # A job may start before the command that submits it has returned.
    typed = (done for begun, done in traces.by_hand if queued < begun <= until)
    asked = min(max(typed, default=queued), launch or until)
    _add(found, "a person", queued, asked)
    return _add(found, "Slurm", asked, launch if launch is not None else until)


def _training(found: Account, start: Start, new: int, all_: int, length_s: float, step_s: float) -> None:
    saves = sum(end - begin for begin, end in start.saves)
    found.seconds["useful steps"] += new * step_s
    found.seconds["steps done twice"] += (all_ - new) * step_s
    found.seconds["saves"] += saves
    found.seconds["rest"] += length_s - all_ * step_s - saves


def _end_without_steps(traces: Traces, start: Start) -> float:
    later = [time for time in traces.gone if time > start.began]
    later += [each.began for each in traces.starts if each.began > start.began]
    return min([*later, traces.until])


def _add(found: Account, part: str, since: float, until: float) -> float:
    found.seconds[part] += until - since
    return until
