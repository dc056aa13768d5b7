"""Advice on a run: each figure beyond its bound, with the key to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from statistics import fmean

from slurm.runs.advice.resources import Resources, cpu_advice, gpu_advice, limit_advice, memory_advice
from slurm.status.submissions import last_submission
from toolkit.errors import UserError
from toolkit.precheck.exactness import MOST_SHARE
from toolkit.report import formats
from toolkit.report.advice import Advice
from toolkit.report.model import RunSummary, section
from toolkit.run.run_dir import RunDir

#: Shares of the time with allocated hosts; above them, a part is reported.
MOST_STARTING, MOST_SAVING, MOST_REPEATED = 0.1, 0.05, 0.05
#: Goodput below this is poor, after several attempts.
LEAST_GOODPUT = 0.8
#: Runs with a shorter allocated time get no advice on their course.
_LEAST_S = 600.0
_MANY_ATTEMPTS = 3
_LONG_WAIT_S = 3600.0


def advise(run: RunDir, summary: RunSummary) -> list[Advice]:
    """Return advice, the most important first; none for a run that has not begun.

    The request is judged only if Slurm started the run. Errors in the request only omit that part.
    """
    if not summary.attempt_usage:
        return []
    found = list(course_advice(summary))
    # An unknown notation in the request is an error of the submission, not of the report.
    with suppress(UserError, ValueError, TypeError, AttributeError):
        found[:0] = _on_resources(summary, _given(run, summary))
    return found


def _given(run: RunDir, summary: RunSummary) -> Resources | None:
    """Return the resources of a run that Slurm started; None for a run on this machine."""
    try:
        submission = last_submission(run)
    except (OSError, LookupError):
        return None
    is_ours = submission is not None and submission.cluster == "slurm" and not submission.is_script
    return summary.resources if is_ours else None


def _on_resources(summary: RunSummary, resources: Resources | None) -> Iterator[Advice]:
    yield from gpu_advice(summary, resources)
    if resources is not None:
        yield from memory_advice(summary, resources)
        yield from cpu_advice(summary, resources)
        yield from limit_advice(summary, resources)


def course_advice(summary: RunSummary) -> Iterator[Advice]:
    """Yield advice on the parts besides training that took much time."""
    yield from _exactness(summary)
    spent = summary.goodput
    if spent.waiting > max(spent.allocated, _LONG_WAIT_S):
        yield _waiting(summary)
    if spent.allocated < _LEAST_S:
        return
    if spent.starting > MOST_STARTING * spent.allocated:
        yield _starting(summary)
    if spent.saving > MOST_SAVING * spent.allocated:
        yield _saving(summary)
    if spent.repeated > MOST_REPEATED * spent.allocated:
        yield _repeated(summary)
    if len(summary.attempt_usage) >= _MANY_ATTEMPTS and (
        spent.training + spent.finishing < LEAST_GOODPUT * spent.allocated
    ):
        yield _restarts(summary)


def _exactness(summary: RunSummary) -> Iterator[Advice]:
    measured = [attempt for attempt in summary.attempts if attempt.exact_share is not None]
    share = measured[-1].exact_share if measured else None
    if share is None or share <= MOST_SHARE:
        return
    yield Advice(
        topic="exactness",
        found=f"{100 * share:.0f} % of each step, {1000 * (measured[-1].exact_s or 0.0):.1f} ms",
        bound=f"{100 * MOST_SHARE:.0f} %",
        change="train.reduction=fast, or a lower train.logical_ranks (each makes another run)",
        reason="Logical ranks are computed one after the other: the same bytes on any number of processes. "
        "`fast` computes them in one pass; results are equal but for rounding and random numbers, such as "
        "those of dropout.",
    )


def _waiting(summary: RunSummary) -> Advice:
    spent = summary.goodput
    return Advice(
        topic="queue",
        found=f"it waited {formats.duration(spent.waiting)}",
        bound=f"the {formats.duration(spent.allocated)} for which it held its hosts",
        change="a shorter resources.time, fewer resources.nodes, or another resources.partition",
        reason="Small and short jobs fit into gaps. `stk plan CONFIG --test-only` says when one would start.",
    )


def _starting(summary: RunSummary) -> Advice:
    spent = summary.goodput
    mean = formats.duration(fmean(attempt.time.spent.starting for attempt in summary.attempt_usage))
    return Advice(
        topic="slow starts",
        found=f"{formats.share(spent.starting, spent.allocated)}, {mean} on average",
        bound=f"{100 * MOST_STARTING:.0f} % of the time held",
        change="stk prepare CONFIG before it is submitted, and an environment on a fast file system",
        reason="Until the first step is done, all hosts of the run wait.",
    )


def _saving(summary: RunSummary) -> Advice:
    spent = summary.goodput
    change, reason = _no_fixed_interval(summary), "The interval is then chosen from the cost of a save."
    if not change:
        change, reason = "STK_EXPERIMENT_DIR on a faster file system", "The run waits for the disk."
    return Advice(
        topic="saves",
        found=f"{formats.share(spent.saving, spent.allocated)} for {_saves(summary)} saves",
        bound=f"{100 * MOST_SAVING:.0f} % of the time held",
        change=change,
        reason=reason,
    )


def _repeated(summary: RunSummary) -> Advice:
    spent = summary.goodput
    change, how = _no_fixed_interval(summary), ": chosen from how often the run is stopped."
    if not change:
        gap_min = spent.allocated / max(1, _saves(summary)) / 60
        change = f"checkpoint.every_minutes={max(0.5, round(gap_min / 2, 1)):g}"
        how = f"; now it saved every {formats.duration(60 * gap_min)}."
    return Advice(
        topic="lost steps",
        found=f"{formats.share(spent.repeated, spent.allocated)} was training that was lost and done again",
        bound=f"{100 * MOST_REPEATED:.0f} % of the time held",
        change=change,
        reason=f"Saves at shorter intervals lose less{how}",
    )


def _restarts(summary: RunSummary) -> Advice:
    spent, attempts = summary.goodput, len(summary.attempt_usage)
    return Advice(
        topic="restarts",
        found=f"goodput {formats.share(spent.training, spent.allocated)} in {attempts} attempts",
        bound=f"{100 * LEAST_GOODPUT:.0f} %",
        change="another resources.partition or resources.qos, where jobs are stopped less often",
        reason="Every attempt costs time before its first step.",
    )


def _no_fixed_interval(summary: RunSummary) -> str:
    """Return how to let the run choose the interval of saves; empty if it already does."""
    chosen = section(summary.config, "checkpoint")
    fixed = [key for key in ("every_steps", "every_minutes") if chosen.get(key) is not None]
    return " ".join(f"checkpoint.{key}=null" for key in fixed)


def _saves(summary: RunSummary) -> int:
    return sum(len(attempt.time.saves) for attempt in summary.attempt_usage)
