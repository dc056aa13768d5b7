"""What was decided about the job of a run, from the newest events."""

from __future__ import annotations

from slurm.status.submissions import Submission
from toolkit.run.attempts.records import AttemptRecord
from toolkit.run.events import last_events
from toolkit.run.run_dir import RunDir

#: Events: the run goes on.
_GOES_ON = ("requeue", "chained", "started_in_place")
#: Events: the run was not started again.
_STOPPED = ("not_requeued", "requeue_failed")
#: Event: a user cancelled the job with stk. A job that runs notes `cancelled` itself.
CANCEL_EVENT = "cancel_requested"


def may_start_again(run: RunDir) -> bool:
    """Whether the last decision about the run's job was to start it again."""
    decisions = (*_GOES_ON, "not_requeued", "cancelled")
    names = [event.name for event in last_events(run) if event.name in decisions]
    return bool(names) and names[-1] in _GOES_ON


def why_not_continued(run: RunDir, newest: AttemptRecord | None, job_id: str | None = None) -> str:
    """Return why the run was not started again, if an event has the reason; else an empty text.

    newest  the newest attempt: an event before it is about an earlier start
    job_id  the newest job: an event of another one says nothing about it
    """
    since = (newest.time_start if newest else None) or 0.0
    for event in reversed(last_events(run)):
        facts = event.facts
        if event.name in (*_GOES_ON, "cancelled", "released") or event.time < since:
            break
        if event.name not in _STOPPED:
            continue
        if job_id is not None and facts.get("job_id", job_id) != job_id:
            break
        # After a failure only `why` is recorded.
        reason = facts.get("reason") or facts.get("why")
        if event.name == "not_requeued" and reason:
            return str(reason)
        if event.name == "requeue_failed" and reason:
            line = str(reason).partition("\n")[0]
            return f"it could not be requeued ({line})"
    return ""


def was_cancelled(run: RunDir, submission: Submission | None, newest: AttemptRecord | None) -> bool:
    """Whether a user cancelled the run's newest job with stk, and no attempt has begun since."""
    if submission is None:
        return False
    since = (newest.time_start if newest else None) or 0.0
    return any(
        event.name == CANCEL_EVENT and event.facts.get("job_id") == submission.job_id and event.time >= since
        for event in last_events(run)
    )
