"""The time of a run, seen from outside and for every tool alike: parts that add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from starts import Start
from tools import Step

#: What the seconds of a run were for, in the order of the tables.
PARTS = ("useful steps", "steps done twice", "saves", "starting", "ending", "Slurm", "a person", "rest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The traces of a run; times in seconds since 1970.

    steps      all that were done, in the order of time
    launches   when Slurm began to run the job's script, each time
    gone       when the job was first seen not to run any more, each time
    by_hand    when somebody submitted it again, as begin and end of the command
    until      where the account ends
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
    """Seconds by what they were for (PARTS), of a wall time from the first launch on."""

    wall: float
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))

    @property
    def goodput(self) -> float:
        return self.seconds["useful steps"] / self.wall

    @property
    def unaccounted(self) -> float:
        """Return the wall time minus the parts: 0 unless they are wrong."""
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
            # Whatever it did until somebody ended it.
            now = _add(found, "starting", now, _end_of_idle(traces, start))
            continue
        now = _add(found, "starting", now, steps[0].time - traces.step_s)
        new = [step for step in steps if step.step > best]
        _training(found, start, len(new), len(steps), steps[-1].time - now, traces.step_s)
        best, now = max(best, steps[-1].step), steps[-1].time
    _between(traces, now, traces.until, found)
    return found


def _between(traces: Traces, since: float, until: float, found: Account) -> float:
    """From the last step of a start to the process of the next one; return where its starting begins."""
    launch = max((time for time in traces.launches if since < time <= until), default=None)
    gone = min((time for time in traces.gone if since < time <= until), default=None)
    if launch is None and gone is None:
        # In the same job: something in there started the ranks again, or the account ends. Before the
        # first start of all it is the launch itself.
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


def _end_of_idle(traces: Traces, start: Start) -> float:
    later = [time for time in traces.gone if time > start.began]
    later += [each.began for each in traces.starts if each.began > start.began]
    return min([*later, traces.until])


def _add(found: Account, part: str, since: float, until: float) -> float:
    found.seconds[part] += until - since
    return until
