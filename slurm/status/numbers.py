"""The numbers of a run's row: progress, speed, metrics, GPU-hours. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from toolkit.run.attempts.records import AttemptRecord
from toolkit.system.output.sanitize import number

Document = Mapping[str, Any]


def percent(step: int, total_steps: int | None) -> float | None:
    """Return the share of steps that are done, in per cent, rounded down: 100 means all."""
    return min(1000, 1000 * step // total_steps) / 10 if total_steps else None


def eta_s(attempts: Sequence[AttemptRecord], progress: Document, now: float) -> float | None:
    """Return the estimated seconds for the remaining steps, from the newest attempt with enough steps.

    The estimate includes evaluations and saves. None if no attempt has done two steps.
    """
    step, total_steps = number(progress.get("step")), number(progress.get("total_steps"))
    if step is None or total_steps is None:
        return None
    seen = number(progress.get("time")) or now
    for attempt in reversed(attempts):
        if (step_s := _step_s(attempt, progress, step, seen)) is not None:
            is_newest = attempt is attempts[-1] and attempt.time_end is None
            passed_s = max(0.0, now - seen) if is_newest else 0.0
            return round(max(0.0, (total_steps - step) * step_s - passed_s), 1)
    return None


def _step_s(attempt: AttemptRecord, progress: Document, step: float, seen: float) -> float | None:
    """Return the mean seconds of a step of an attempt, without its first; None for too few steps.

    If a second training has begun in the attempt, only its steps count.
    """
    begun, first = attempt.time_start, attempt.first_step_after_start_s
    second, since = number(progress.get("second_step")), number(progress.get("second_time"))
    last, end = step if attempt.last_step is None else attempt.last_step, attempt.time_end or seen
    if progress.get("second_attempt") == attempt.attempt and second is not None and since is not None:
        steps, seconds = last - second, min(end, seen) - since
    elif begun is None or first is None:
        return None
    else:
        steps, seconds = last - (attempt.first_step or 0) - 1, end - begun - first
    return seconds / steps if steps >= 1 and seconds > 0 else None


def gpu_hours(attempts: Sequence[AttemptRecord], seen: float) -> float | None:
    """Return the GPU-hours of the attempts, one GPU for each rank; None if no attempt used GPUs.

    seen   time of the newest update, used as the end of an attempt without a recorded end
    """
    seconds, has_gpu = 0.0, False
    for attempt, following in zip_longest(attempts, attempts[1:]):
        if attempt.device != "cuda" or (begun := attempt.time_start) is None:
            continue
        end = attempt.time_end or (following.time_start if following else seen) or begun
        seconds += (attempt.world_size or 1) * max(0.0, end - begun)
        has_gpu = True
    return round(seconds / 3600, 3) if has_gpu else None


def newest(*moments: object) -> float | None:
    """Return the latest of the known times; None if none is known."""
    return max([known for moment in moments if (known := number(moment)) is not None], default=None)
