"""submissions.jsonl and the intent file: what was handed to a scheduler, without gaps."""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurm import controller
from toolkit.errors import RunBusy
from toolkit.files import append_json_line, read_json, read_json_lines, write_json, write_quickly
from toolkit.rundir import RunDir

if TYPE_CHECKING:
    from toolkit.config.schema import Resources

_LOCK_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One line of submissions.jsonl.

    cluster   slurm or local
    job_id    Slurm's id, ARRAY_TASK for a task of an array, or `local-<process id of the launcher>`
    host      where it was submitted
    name      the job's name, of a task its array's
    """

    cluster: str
    job_id: str
    host: str
    name: str
    time: float

    @property
    def pid(self) -> int:
        """Process id of a local launcher."""
        return int(self.job_id.removeprefix("local-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A run that must finish before another one begins.

    job_id   the job that trains it; None where the other one waits on this machine
    """

    run: RunDir
    job_id: str | None


def submissions(run: RunDir) -> list[Submission]:
    """All submissions of a run, oldest first."""
    names = Submission.__slots__
    return [Submission(**{name: line[name] for name in names}) for line in read_json_lines(run.submissions)]


def last_submission(run: RunDir) -> Submission | None:
    """The newest submission, or None."""
    return next(reversed(submissions(run)), None)


def last_resources(run: RunDir) -> Resources:
    """The resources of the last submission; of a run that never was submitted, its config's."""
    # Slow to import, and who only asks where a job stands needs no experiment.
    from toolkit.config import load_resolved, load_resources

    experiment = load_resolved(run.config)
    return load_resources(run.job, experiment) if run.job.exists() else experiment.resources


def record(run: RunDir, *, cluster: str, job_id: str, name: str, **facts: Any) -> Submission:
    """Write down a submission that was accepted; the intent is done then."""
    submission = Submission(
        cluster=cluster, job_id=job_id, host=socket.gethostname(), name=name, time=time.time()
    )
    line = {field: getattr(submission, field) for field in Submission.__slots__}
    append_json_line(run.submissions, {**line, "user": getpass.getuser(), **facts})
    run.intent.unlink(missing_ok=True)
    return submission


def intend(run: RunDir, name: str, *, durable: bool = True, **facts: Any) -> None:
    """Write down, before sbatch is called, the name that the job will have.

    durable  False where the same is known from elsewhere after a crash of the machine
    facts   of a task of an array: its number as `task`, and where the array works as `work_dir`
    """
    known = {"name": name, "time": time.time(), "host": socket.gethostname(), "pid": os.getpid()}
    if durable:
        write_json(run.intent, known | facts)
    else:
        write_quickly(run.intent, json.dumps(known | facts) + "\n")


def settle(run: RunDir) -> Submission | None:
    """Find the job of a submitter that died before it wrote the job's id; without one, drop its intent.

    Raises SchedulerError where the controller does not answer.
    """
    found = recover(run)
    if found is None:
        run.intent.unlink(missing_ok=True)
    return found


def recover(run: RunDir) -> Submission | None:
    """Record the job that an intent led to, if there is one.

    Names are unique in a run, and a job's working directory is the run's folder, or the array's, so another
    job of the same name is not mistaken for it. Raises SchedulerError where the controller does not answer.
    """
    intent = read_json(run.intent)
    if intent is None:
        return None
    base = find_job(intent["name"], intent.get("work_dir", run.path))
    if base is None:
        return None
    job_id = f"{base}_{intent['task']}" if "task" in intent else base
    return record(run, cluster="slurm", job_id=job_id, name=intent["name"], recovered=True)


def find_job(name: str, work_dir: str | Path) -> str | None:
    """The id of the job, or of the whole array, of this name that works there; None where there is none.

    Raises SchedulerError where the controller does not answer.
    """
    for job in controller.jobs(names=[name]):
        if os.path.realpath(job.work_dir) == os.path.realpath(work_dir):
            return job.base_id
    return None


@contextmanager
def exclusively(run: RunDir) -> Iterator[None]:
    """Hold the run's submission lock. Raises RunBusy where somebody else submits it right now."""
    with hold(run.lock, run.run_id):
        yield


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the submission lock of a run or a sweep. Raises RunBusy, which says of what."""
    from filelock import FileLock, Timeout  # slow to import, and only who submits needs it

    lock = FileLock(path)
    try:
        lock.acquire(timeout=_LOCK_S)
    except Timeout:
        raise RunBusy(f"{what} is being submitted by another process right now") from None
    try:
        yield
    finally:
        lock.release()
