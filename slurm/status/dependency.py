"""Why a run that waits for another run has not started, from the newest submission and events."""

from __future__ import annotations

import math
from pathlib import Path

from slurm.status.submissions import last_submission
from toolkit.files import read_json
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import read_events
from toolkit.run.run_dir import RunDir

#: Event: a run that waited for another one was not begun, with the reason.
NOT_BEGUN = "not_begun"


def _awaited(run: RunDir) -> tuple[RunDir, float] | None:
    """Return the run that this one waits for, and the time of this run's newest submission.

    None if it waits for no run, or has begun since that submission.
    """
    last = last_submission(run)
    if last is None or not last.awaits:
        return None
    attempts = read_attempts(run)
    begun = attempts[-1].time_start if attempts else -math.inf
    has_begun = begun is None or begun >= last.time
    return None if has_begun else (RunDir(Path(last.awaits)), last.time)


def waits_for(run: RunDir) -> str | None:
    """Return a text with the run that a pending run waits for; None if it waits for no run."""
    found = _awaited(run)
    if found is None or found[0].result.exists():
        return None
    return f"waits for {found[0].run_id} to finish"


def why_not_begun(run: RunDir) -> str | None:
    """Return why a run that waited for another one was removed from the queue; None if it was not."""
    found = _awaited(run)
    if found is None:
        return None
    first, submitted = found
    said = [event.facts.get("why") for event in read_events(run, NOT_BEGUN) if event.time >= submitted]
    if said:
        return f"not begun: {said[-1]}"
    if first.result.exists():
        return None
    end = "failed" if read_json(first.failure) is not None else "has not finished"
    return f"not begun: {first.run_id}, which it waited for, {end}"
