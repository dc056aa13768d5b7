"""stk requeue"""

from __future__ import annotations

from argparse import Namespace

from slurm import controller
from slurm.preempt import REQUEST_EVENT
from slurm.release import waits_for_begin_time
from slurm.status.rows import RunStatus, status
from slurm.submissions import last_submission
from slurm.why import WARNING_SIGNAL
from toolkit.create import experiment_dir
from toolkit.events import note_event
from toolkit.rundir import RunDir, find_run


def run(arguments: Namespace) -> int:
    """Send running jobs back into the queue, and let requeued ones start at once."""
    parent = experiment_dir()
    targets = [find_run(name, parent) for name in arguments.runs]
    for target, now in zip(targets, status(targets), strict=True):
        print(f"{target.run_id}: {_requeue(target, now)}")
    return 0


def _requeue(target: RunDir, now: RunStatus) -> str:
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
