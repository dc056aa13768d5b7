"""What a person may do to a run: end it, or send it back into the queue."""

from __future__ import annotations

import os
import signal

from slurm import controller
from slurm.preempt import REQUEST_EVENT
from slurm.release import waits_for_begin_time
from slurm.status.rows import RunStatus, is_launcher_alive
from slurm.submissions import last_submission
from slurm.why import WARNING_SIGNAL
from toolkit.errors import UserError
from toolkit.events import note_event
from toolkit.rundir import RunDir


def cancel(target: RunDir, now: RunStatus) -> str:
    """End a live run; say what was done. Raises UserError, SchedulerError."""
    submission = last_submission(target)
    if not now.is_live:
        return f"not live ({now.state}), nothing to cancel"
    if submission is None:
        raise UserError(f"{target.run_id} runs in the foreground of some terminal: press Ctrl-C there")
    if submission.cluster == "slurm":
        controller.cancel(submission.job_id)
        return f"job {submission.job_id} cancelled"
    if not is_launcher_alive(submission):
        raise UserError(f"{target.run_id} was started on {submission.host}: cancel it there")
    os.kill(submission.pid, signal.SIGTERM)
    return "asked to save and leave"


def requeue(target: RunDir, now: RunStatus) -> str:
    """Send a running job back into the queue, or let a requeued one start at once; say what was done.

    Raises SchedulerError.
    """
    submission = last_submission(target)
    if not now.is_live:
        return f"not live ({now.state}): stk resume {target.run_id} starts it again"
    if submission is None or submission.cluster != "slurm":
        return f"no job of Slurm's: stk cancel {target.run_id} lets it save, stk resume goes on"
    job_id = submission.job_id
    if now.state == "running":
        # Written first: it tells the run that this signal is not Slurm's warning of the time limit.
        note_event(target, REQUEST_EVENT, job_id=job_id)
        controller.signal_steps(job_id, WARNING_SIGNAL)
        return f"job {job_id} was asked to save and to go back into the queue"
    if waits_for_begin_time(now):
        controller.release_now(job_id)
        return f"job {job_id} may start in {controller.RELEASE_DELAY_S} s"
    return f"job {job_id} waits already ({now.reason or now.state})"
