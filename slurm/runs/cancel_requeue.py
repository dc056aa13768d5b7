"""Cancel or requeue a run on a user's request."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress

from slurm.client import programs
from slurm.client.stop_reason import WARNING_SIGNAL
from slurm.job.release_requeued import waits_for_begin_time
from slurm.job.when_to_stop import REQUEST_EVENT
from slurm.status.decisions import CANCEL_EVENT
from slurm.status.liveness import is_launcher_alive, works_for
from slurm.status.rows import RunStatus, status
from slurm.status.submissions import Submission, exclusively, last_submission, recover, recover_lost
from toolkit.errors import RunBusy, SchedulerError, UserError
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.host import is_here

#: Slurm's state of a job whose processes pause.
SUSPENDED = "SUSPENDED"


def find_and_cancel(target: RunDir) -> str:
    """As `cancel`; a job is found too if its submitter died. Raises RunBusy if the job is not there yet."""
    late = ""
    try:
        recover_lost(target)
    except RunBusy as error:
        late = str(error)
    (now,) = status([target])
    if late and not now.is_live:
        raise RunBusy(late)
    done = cancel(target, now)
    return f"{done}; {late}" if late else done


def cancel(target: RunDir, now: RunStatus) -> str:
    """Cancel a live run; return the action. Raises UserError, also for another run's job; SchedulerError."""
    submission = last_submission(target)
    now.check_known()
    if not now.is_live:
        text = f"not live ({now.state}), nothing to cancel"
        return f"not live as far as stk knows: {now.reason}" if now.state == "unknown" else text
    _refuse_script(target, submission, now)
    if submission is not None and submission.cluster == "slurm" and now.job_id is not None:
        return _cancel_job(target, submission.job_id)
    if submission is not None and submission.cluster == "local":
        if is_launcher_alive(target, submission):
            end_launcher(target, submission)
            return "asked to save and exit"
        if not is_here(submission.host, submission.boot):
            raise UserError(f"{target.run_id} was started on {submission.host}: cancel it there")
    raise UserError(
        f"{target.run_id} runs in the foreground of some terminal, or in a job of your own: end it there, "
        "with Ctrl-C or scancel"
    )


def end_launcher(target: RunDir, submission: Submission) -> None:
    """Ask the launcher of a local submission to save and exit. Raises UserError for another user's."""
    try:
        with suppress(ProcessLookupError):
            os.kill(submission.pid, signal.SIGTERM)
            note_event(target, CANCEL_EVENT, job_id=submission.job_id)
    except PermissionError:
        raise UserError(
            f"{target.run_id} was started by another user (process {submission.pid}), who alone can cancel it"
        ) from None


def _refuse_script(target: RunDir, submission: Submission | None, now: RunStatus) -> None:
    """Raise UserError if a job of a user's own batch script trains the run."""
    if submission is not None and submission.is_script and now.job_id is not None:
        raise UserError(
            f"{target.run_id} trains in job {submission.job_id}, which is your own batch script: use "
            "scancel, or scontrol requeue"
        )


def _cancel_job(target: RunDir, job_id: str) -> str:
    state = check_jobs({job_id: target})[job_id]
    cancel_jobs({job_id: target})
    end = f"; {unsaved(target)}" if state == SUSPENDED else ""
    try:
        following = cancel_following(target, job_id)
    except (RunBusy, SchedulerError):
        again = f"repeat stk cancel {target.run_id}"
        return f"job {job_id} cancelled{end}. The next one may have been submitted: {again}"
    return (f"jobs {job_id} and {following} cancelled" if following else f"job {job_id} cancelled") + end


def cancel_jobs(targets: Mapping[str, RunDir]) -> None:
    """Cancel jobs with one call, and note it in the folders of their runs. Raises SchedulerError."""
    programs.cancel(*targets)
    for job_id, target in targets.items():
        # Slurm forgets ended jobs, and a job that waits writes nothing itself.
        note_event(target, CANCEL_EVENT, job_id=job_id)


def unsaved(target: RunDir) -> str:
    """Return a text about a run whose suspended job was cancelled: Slurm kills its processes at once."""
    cure = f"stk resume {target.run_id} continues from its newest checkpoint"
    return f"it was suspended and could not save: {cure}"


def cancel_following(target: RunDir, job_id: str) -> str:
    """Cancel the job that a run submitted while `job_id` was cancelled; return its id, "" without one.

    A job submits the following one under the lock. Raises RunBusy, SchedulerError.
    """
    with exclusively(target):
        recover(target)
    newest = last_submission(target)
    if newest is None or newest.job_id == job_id:
        return ""
    check_jobs({newest.job_id: target})
    cancel_jobs({newest.job_id: target})
    return newest.job_id


def check_jobs(targets: Mapping[str, RunDir]) -> dict[str, str]:
    """Return Slurm's state of each job. Raises UserError unless each belongs to its run: files may name any.

    One call for any number of jobs. Raises SchedulerError if Slurm does not answer.
    """
    own = {
        name: job.state
        for job in programs.jobs(ids=targets)
        for name in (job.job_id, job.base_id)
        if name in targets and works_for(job.work_dir, job.job_id, targets[name])
    }
    for job_id, target in targets.items():
        if job_id not in own:
            raise UserError(
                f"{target.submissions} names job {job_id[:40]}, but Slurm knows no such job that works in "
                f"{target.path}: nothing was done to it"
            )
    return own


def requeue(target: RunDir, now: RunStatus) -> str:
    """Requeue a running job, or let a requeued job start at once; return the action as text.

    Raises UserError for a job of another run and a suspended one, SchedulerError.
    """
    submission = last_submission(target)
    now.check_known()
    if not now.is_live:
        again = "" if now.state == "finished" else f": stk resume {target.run_id} starts it again"
        return f"not live ({now.state}){again}"
    _refuse_script(target, submission, now)
    if submission is None or submission.cluster != "slurm" or now.job_id is None:
        return f"it has no Slurm job: stk cancel or Ctrl-C saves it, stk resume {target.run_id} continues it"
    job_id = submission.job_id
    if (state := check_jobs({job_id: target})[job_id]) == SUSPENDED:
        raise UserError(
            f"job {job_id} is suspended: wait until it runs again, or stk cancel {target.run_id} and "
            f"stk resume {target.run_id}, which repeats the steps since its newest checkpoint"
        )
    if state == "RUNNING" and not programs.numbered_steps(job_id):
        programs.requeue(job_id)
        return f"job {job_id} was requeued: none of its ranks were running, so nothing had to be saved"
    if now.state == "running":
        # Written before the signal: it tells the run that this is not Slurm's warning of the time limit.
        note_event(target, REQUEST_EVENT, job_id=job_id)
        programs.signal_steps(job_id, WARNING_SIGNAL)
        return f"job {job_id} was asked to save and to requeue"
    if waits_for_begin_time(now):
        programs.release_now(job_id)
        return f"job {job_id} may start in {programs.RELEASE_DELAY_S} s"
    return f"job {job_id} is already waiting ({now.reason or now.state})"
