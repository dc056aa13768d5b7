"""A run that waits for another one: what the newest submission records, and what becomes of it."""

from __future__ import annotations

import math
from pathlib import Path

from slurm.status.submissions import last_submission
from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import read_events
from toolkit.run.run_dir import RunDir

#: In events.jsonl: a run that waited here was not begun, and why.
NOT_BEGUN = "not_begun"


def _awaited(run: RunDir) -> tuple[RunDir, float] | None:
    """The run that this one waits for, and the time of its newest submission.

    None if it waits for no run, or has begun since that submission.
    """
    last = last_submission(run)
    if last is None or not last.awaits:
        return None
    attempts = read_attempts(run)
    begun = attempts[-1].time_start if attempts else -math.inf
    has_begun = begun is None or begun >= last.time
    return None if has_begun else (RunDir(Path(last.awaits)), last.time)


def standing(run: RunDir, state: str, reason: str) -> tuple[str, str]:
    """State and reason of a run, in terms of the run that it waits for where it does; else as they are."""
    if state == "pending" and "NeverSatisfied" not in reason and (waits := waits_for(run)):
        return state, waits
    if state in ("failed", "cancelled", "unknown") and (why := why_not_begun(run)):
        return "cancelled", why
    return state, reason


def waits_for(run: RunDir) -> str | None:
    """Return the run that a pending run waits for, in words; None if it waits for no run."""
    found = _awaited(run)
    if found is None or found[0].result.exists():
        return None
    return f"waits for {found[0].run_id} to finish"


def why_not_begun(run: RunDir) -> str | None:
    """Why a run that waited for another one was taken out of the queue; None where it was not."""
    if (found := _awaited(run)) is None:
        return None
    first, submitted = found
    said = [event.facts.get("why") for event in read_events(run, NOT_BEGUN) if event.time >= submitted]
    if said:
        return f"not begun: {said[-1]}"
    if first.result.exists():
        return None
    end = "failed" if read_json(first.failure) is not None else "has not finished"
    return f"not begun: {first.run_id}, which it waited for, {end}"
