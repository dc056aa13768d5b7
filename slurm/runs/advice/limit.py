"""Advice on the time limit."""

from __future__ import annotations

from collections.abc import Iterator

from slurm.client.time_limits import format_minutes
from slurm.runs.advice.requested import Resources, asked_minutes
from toolkit.report import Advice, RunSummary, formats

#: Below this share of the limit, the longest start used little of it.
LEAST_USED = 0.5
#: A shorter limit than this gains nothing.
_LEAST_MINUTES = 30
_ROOM = 1.25
#: More of the time than this for the starts that a short limit makes is much.
MOST_STARTING = 0.05


def limit_advice(summary: RunSummary, resources: Resources) -> Iterator[Advice]:
    """Yield whether a shorter time limit would do, or a longer one would save starts.

    Raises UserError for a limit in no known notation.
    """
    minutes = asked_minutes(resources)
    if minutes is None:
        return
    held = [start.time.end - start.time.begin for start in summary.starts]
    stopped = sum(attempt.why == "time_limit" for attempt in summary.attempts)
    if stopped:
        yield from _longer(summary, minutes, stopped)
    elif summary.state == "finished" and minutes > _LEAST_MINUTES:
        yield from _shorter(summary, minutes, max(held), sum(held) / len(held))


def _shorter(summary: RunSummary, minutes: int, longest_s: float, mean_s: float) -> Iterator[Advice]:
    enough = _rounded(longest_s * _ROOM / 60)
    if longest_s > LEAST_USED * minutes * 60 or enough >= minutes:
        return
    waited = formats.duration(summary.goodput.waiting)
    yield Advice(
        topic="time limit",
        found=f"the longest start took {formats.duration(longest_s)}, the mean {formats.duration(mean_s)}",
        bound=f"{LEAST_USED:.0%} of {format_minutes(minutes)}",
        change=f"resources.time={format_minutes(enough)}",
        reason=f"A short job fits into gaps of the queue and starts sooner; this run waited {waited}.",
    )


def _longer(summary: RunSummary, minutes: int, stopped: int) -> Iterator[Advice]:
    spent = summary.goodput
    if spent.starting <= MOST_STARTING * spent.allocated:
        return
    yield Advice(
        topic="time limit",
        found=f"{stopped} starts reached it; starting took {formats.share(spent.starting, spent.allocated)}",
        bound=f"{MOST_STARTING:.0%} of the time held",
        change=f"resources.time={format_minutes(2 * minutes)}",
        reason="Fewer starts, if the partition allows so long a job.",
    )


def _rounded(minutes: float) -> int:
    """Minutes up to what a person would write."""
    step = 5 if minutes <= 60 else 15 if minutes <= 240 else 60
    return step * max(1, -(-int(minutes + 0.999) // step))
