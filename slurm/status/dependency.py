"""A run that waits for another one: what the newest submission says, and what becomes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.files import read_json, read_json_lines
from toolkit.run.attempts.records import read_attempts
from toolkit.run.events import read_events
from toolkit.run.run_dir import RunDir
from toolkit.system.sanitize import number

#: In events.jsonl: a run that waited here was not begun, and why.
NOT_BEGUN = "not_begun"
#: In a line of submissions.jsonl: the folder of the run that must finish first.
KEY = "awaits"


def awaited(run: RunDir) -> RunDir | None:
    """The run that this one's newest submission waits for; None where there is none, or it has begun."""
    last = _newest_submission(run)
    if last is None or not last.get(KEY):
        return None
    submitted = _moment(last)
    attempts = read_attempts(run)
    begun = attempts[-1].time_start if attempts else -math.inf
    has_begun = begun is None or begun >= submitted
    return None if has_begun else RunDir(Path(str(last[KEY])))


def standing(run: RunDir, state: str, reason: str) -> tuple[str, str]:
    """State and reason of a run, in terms of the run that it waits for where it does; else as they are."""
    if state == "pending" and "NeverSatisfied" not in reason and (waits := waits_for(run)):
        return state, waits
    if state in ("failed", "cancelled", "unknown") and (why := why_not_begun(run)):
        return "cancelled", why
    return state, reason


def waits_for(run: RunDir) -> str | None:
    """Return the run that a pending run waits for, in words; None if it waits for no run."""
    first = awaited(run)
    if first is None or first.result.exists():
        return None
    return f"waits for {first.run_id} to finish"


def why_not_begun(run: RunDir) -> str | None:
    """Why a run that waited for another one was taken out of the queue; None where it was not."""
    first = awaited(run)
    if first is None:
        return None
    submitted = _moment(_newest_submission(run) or {})
    said = [event.facts.get("why") for event in read_events(run, NOT_BEGUN) if event.time >= submitted]
    if said:
        return f"not begun: {said[-1]}"
    if first.result.exists():
        return None
    end = "failed" if read_json(first.failure) is not None else "has not finished"
    return f"not begun: {first.run_id}, which it waited for, {end}"


def _moment(submission: Mapping[str, Any]) -> float:
    return number(submission.get("time")) or 0.0


def _newest_submission(run: RunDir) -> dict[str, Any] | None:
    *_, last = [None, *read_json_lines(run.submissions)]
    return last
