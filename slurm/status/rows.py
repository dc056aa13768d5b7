"""Where runs stand: what their folders say and what the scheduler says, put together."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil
from filelock import FileLock, Timeout

from slurm import controller
from slurm.queue import JobState, poll
from slurm.submissions import Submission, last_submission
from toolkit.errors import SchedulerError
from toolkit.failure.records import NO_PROGRESS
from toolkit.files import read_json, read_json_lines
from toolkit.rundir import RunDir

_LIVE = ("pending", "running", "requeued", "held")

#: Begins the reason of a run whose job may wait or run for all that is known.
CANNOT_ASK = "Slurm cannot be asked about the job"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """One run as `stk status` shows it; the fields of --json."""

    run_id: str
    run_dir: str
    job_id: str | None
    state: str
    step: int
    total_steps: int | None
    epoch: float | None
    restarts: int
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    is_live: bool = False

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        # What follows from the state, for the code that asks.
        del fields["is_live"]
        return fields


def status(runs: Sequence[RunDir]) -> list[RunStatus]:
    """The status of these runs, with at most two scheduler calls whatever their number.

    Where the controller does not answer, the folders alone are asked and the reason says so.
    """
    latest = {run: last_submission(run) for run in runs}
    jobs = _poll(latest.values())
    return [_status(run, submission, jobs) for run, submission in latest.items()]


def _poll(submissions: Iterable[Submission | None]) -> dict[str, JobState]:
    ids = [s.job_id for s in submissions if s is not None and s.cluster == "slurm"]
    if not ids:
        return {}
    try:
        if controller.is_available():
            return poll(ids)
        why = "no controller answers"
    except SchedulerError as error:
        why = str(error).splitlines()[0]
    return dict.fromkeys(ids, JobState(state="unknown", reason=f"{CANNOT_ASK}: {why}"))


def _status(run: RunDir, submission: Submission | None, jobs: dict[str, JobState]) -> RunStatus:
    state, reason = _state(run, submission, jobs)
    progress = read_json(run.result) or read_json(run.progress) or {}
    starts = [line for line in read_json_lines(run.attempts) if "time_start" in line]
    return RunStatus(
        run_id=run.run_id,
        run_dir=str(run.path),
        job_id=submission.job_id if submission else None,
        state=state,
        step=progress.get("step", 0),
        total_steps=progress["step"] if state == "finished" else progress.get("total_steps"),
        epoch=progress.get("epoch"),
        restarts=max(0, len(starts) - 1),
        metrics=_flat(progress.get("metrics", {})),
        reason=reason,
        # One that is held because it made no progress has no job: it may be started again.
        is_live=state in _LIVE and (state != "held" or _is_held_by_slurm(submission, jobs)),
    )


def _flat(metrics: dict[str, Any]) -> dict[str, float]:
    """result.json has metrics by split, progress.json has them flat."""
    flat: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, dict):
            flat.update({f"{name}_{inner}": number for inner, number in value.items()})
        else:
            flat[name] = value
    return flat


def _state(run: RunDir, submission: Submission | None, jobs: dict[str, JobState]) -> tuple[str, str]:
    """State and reason: the folder's own word first, for a batch script can swallow a failure."""
    if run.result.exists():
        return "finished", ""
    if is_training_here(run):
        return "running", ""
    if submission is not None and submission.cluster == "slurm":
        job = jobs.get(submission.job_id)
        if job is not None and job.state in (*_LIVE, "cancelled"):
            return job.state, _why(job)
    elif submission is not None and is_launcher_alive(submission):
        return "pending", "the processes are starting"
    return _state_of_ended(run, submission, jobs.get(submission.job_id) if submission else None)


def _why(job: JobState) -> str:
    """Slurm's reason, and what to do where waiting does not help."""
    if job.reason in job.advice:
        return job.advice or job.reason
    return f"{job.reason}: {job.advice}" if job.advice else job.reason


def _state_of_ended(run: RunDir, submission: Submission | None, job: JobState | None) -> tuple[str, str]:
    failure = read_json(run.failure)
    if failure is not None and failure["class"] == NO_PROGRESS:
        return "held", _first_line(failure["message"])
    if failure is not None:
        return "failed", f"rank {failure['rank']} on {failure['host']}: {_first_line(failure['message'])}"
    if job is not None and job.state == "failed":
        return "failed", job.reason
    if job is not None and job.reason.startswith(CANNOT_ASK):
        return "unknown", job.reason
    end = _last_end(run)
    if end is not None:
        return "cancelled", f"stopped by {end['why']} after step {end['last_step']}; stk resume goes on"
    if job is not None and job.state == "finished":
        return "failed", "the job ended without finishing the run; its log may say why"
    if submission is not None and submission.cluster == "local" and submission.host == socket.gethostname():
        return "failed", "its processes are gone without a word (killed?); stk resume goes on"
    return "unknown", "neither the scheduler nor the run folder says how it ended; stk resume goes on"


def _is_held_by_slurm(submission: Submission | None, jobs: dict[str, JobState]) -> bool:
    """Whether a held run has a job that is held; else there is none."""
    return submission is not None and submission.job_id in jobs and jobs[submission.job_id].state == "held"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _last_end(run: RunDir) -> dict[str, Any] | None:
    """How the newest start ended; None where it did not say so."""
    last: dict[str, Any] = {}
    for line in read_json_lines(run.attempts):
        last = line
    return last if "time_end" in last else None


def is_training_here(run: RunDir) -> bool:
    """Whether a rank 0 holds the run's lock, as far as this host's file system can tell."""
    if not run.alive.exists():
        return False
    lock = FileLock(run.alive)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def is_launcher_alive(submission: Submission) -> bool:
    """Whether the launcher of a local submission lives; only its own host can say so."""
    if submission.host != socket.gethostname():
        return False
    try:
        process = psutil.Process(submission.pid)
        # The number may belong to a younger process by now.
        return bool(process.create_time() <= submission.time + 1 and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
