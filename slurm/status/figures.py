"""The numbers of a run's row: how far, how fast, how good, how much of the cluster. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

Document = Mapping[str, Any]


def number(value: object) -> float | None:
    """A finite number, or None: whatever stands in a file that somebody may have edited."""
    # Not isinstance: a bool is no number here, and of ten thousand runs there are 300,000 such questions.
    if type(value) is float:
        return value if -math.inf < value < math.inf else None
    return value if type(value) is int else None


def whole(value: object) -> int | None:
    """A whole number, or None."""
    found = number(value)
    return None if found is None else int(found)


def metrics(document: Document) -> dict[str, float]:
    """The metrics of result.json, which has them by split, or of progress.json, which has them flat."""
    flat: dict[str, float] = {}
    found = document.get("metrics")
    for name, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, dict):
            flat.update(
                {f"{name}_{inner}": each for inner, each in value.items() if number(each) is not None}
            )
        elif number(value) is not None:
            flat[name] = value
    return flat


def percent(step: int, total_steps: int | None) -> float | None:
    """How much of the steps is done."""
    return round(min(100.0, 100 * step / total_steps), 1) if total_steps else None


def eta_s(starts: Sequence[Document], progress: Document, now: float) -> float | None:
    """Seconds that the rest of the steps will take, at the pace of the newest start that made some.

    Evaluations and saves on the way are part of the pace. None where no start has made two steps.
    """
    step, total_steps = number(progress.get("step")), number(progress.get("total_steps"))
    if step is None or total_steps is None:
        return None
    seen = number(progress.get("time")) or now
    for start in reversed(starts):
        if (step_s := _step_s(start, step, seen)) is not None:
            is_newest = start is starts[-1] and "time_end" not in start
            passed_s = max(0.0, now - seen) if is_newest else 0.0
            return round(max(0.0, (total_steps - step) * step_s - passed_s), 1)
    return None


def _step_s(start: Document, step: float, seen: float) -> float | None:
    """Seconds that a start took for a step, its first one left out."""
    begun, first = number(start.get("time_start")), number(start.get("first_step_after_start_s"))
    if begun is None or first is None:
        return None
    end, last = number(start.get("time_end")) or seen, number(start.get("last_step"))
    steps = (step if last is None else last) - (number(start.get("first_step")) or 0) - 1
    seconds = end - begun - first
    return seconds / steps if steps >= 1 and seconds > 0 else None


def gpu_hours(starts: Sequence[Document], seen: float) -> float | None:
    """Hours of GPUs that the starts had, one for each rank that computed on one; None where none did.

    seen   the newest sign of life: the end of a start that did not say when it ended
    """
    seconds, has_gpu = 0.0, False
    for start, following in zip_longest(starts, starts[1:]):
        if start.get("device") != "cuda" or (begun := number(start.get("time_start"))) is None:
            continue
        limit = number(following.get("time_start")) if following else seen
        end = number(start.get("time_end")) or limit or begun
        seconds += (number(start.get("world_size")) or 1) * max(0.0, end - begun)
        has_gpu = True
    return round(seconds / 3600, 3) if has_gpu else None


def hosts(start: Document) -> list[str]:
    """The hosts of a start."""
    found = start.get("hosts")
    return [str(host) for host in found] if isinstance(found, list) else []


def newest(*moments: object) -> float | None:
    """The latest of some points in time, as far as they are known."""
    return max((known for moment in moments if (known := number(moment)) is not None), default=None)
