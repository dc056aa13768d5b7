"""submissions.jsonl and the intent file: what was handed to a scheduler, without gaps."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slurm.client import programs
from slurm.client.queue import STATES, TERMINAL
from toolkit.errors import RunBusy
from toolkit.files import append_json_line, read_json, read_json_lines, write_json, write_quickly
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir
from toolkit.system.host import boot

if TYPE_CHECKING:
    from slurm.config.resources import Resources

#: By how much the clocks of a submitter and of the controller may differ; the latter counts whole seconds.
_CLOCKS_S = 5.0
#: How long after a lost answer a busy controller may still take the job.
_LATE_S = 60.0
_LOCK_S = 10.0
_LOCAL = re.compile(r"local-[1-9]\d{0,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One line of submissions.jsonl.

    cluster   slurm or local
    job_id    Slurm's id, ARRAY_TASK for a task of an array, or `local-<process id of the launcher>`
    host      where it was submitted
    boot      of that host (toolkit.system.host); empty where it is not known
    name      the job's name, of a task its array's
    array     the name of the array that it is a task of; else empty
    awaits    the folder of the run that must finish first; empty if it waits for none
    """

    cluster: str
    job_id: str
    host: str
    name: str
    time: float
    boot: str = ""
    array: str = ""
    awaits: str = ""

    @property
    def pid(self) -> int:
        """Process id of a local launcher. Raises ValueError if the job id does not name one."""
        if not _LOCAL.fullmatch(self.job_id):
            raise ValueError(f"{self.job_id[:100]!r} does not name a process")
        return int(self.job_id.removeprefix("local-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A run that must finish before another one begins.

    job_id   the job that trains it; None where the other one waits on this machine
    """

    run: RunDir
    job_id: str | None


def submissions(run: RunDir) -> list[Submission]:
    """All submissions of a run, oldest first; invalid lines are left out."""
    return list(filter(None, map(submission_of, read_json_lines(run.submissions))))


def submission_of(line: Mapping[str, Any]) -> Submission | None:
    """Return the submission of a line of submissions.jsonl; None if it is not one."""
    try:
        return from_json(Submission, line)
    except TypeError:
        return None


def last_submission(run: RunDir) -> Submission | None:
    """The newest submission, or None."""
    return next(reversed(submissions(run)), None)


def last_resources(run: RunDir) -> Resources:
    """The resources of the last submission; of a run that never was submitted, its config's."""
    # Slow to import, and a query of a job's state needs no experiment.
    from toolkit.config import load_submitted

    resources: Resources = load_submitted(run.config, run.job).resources
    return resources


def record(run: RunDir, *, cluster: str, job_id: str, name: str, **facts: Any) -> Submission:
    """Write down a submission that was accepted; the intent is done then."""
    what = {"cluster": cluster, "job_id": job_id, "host": socket.gethostname(), "name": name}
    line = {**what, "time": time.time(), "boot": boot(), "user": getpass.getuser(), **facts}
    append_json_line(run.submissions, line)
    run.intent.unlink(missing_ok=True)
    submission = submission_of(line)
    assert submission is not None
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


def resolve_lost(run: RunDir) -> Submission | None:
    """Find the job of a submitter that died before it wrote the job's id; without one, drop its intent.

    Raises SchedulerError where the controller does not answer, and AnswerLost where the job may still come.
    """
    found = recover(run)
    if found is None:
        check_late(run)
        run.intent.unlink(missing_ok=True)
    return found


def check_late(run: RunDir) -> None:
    """Raise AnswerLost where the answer about a run's job was lost so lately that the job may still come."""
    left = (read_json(run.intent) or {}).get("lost", 0.0) + _LATE_S - time.time()
    if left > 0:
        raise programs.AnswerLost(
            f"Slurm gave no answer when {run.run_id} was submitted, and may still take its job: "
            f"submit it again in {left:.0f} s"
        )


def mark_lost(run: RunDir) -> None:
    """Write into the intent that the answer of sbatch was lost just now."""
    write_json(run.intent, (read_json(run.intent) or {}) | {"lost": time.time()})


def recover(run: RunDir) -> Submission | None:
    """Record the job that an intent led to, if there is one.

    Names are unique in a run, and a job's working directory is the run's folder, or the array's, so another
    job of the same name is not mistaken for it. Raises SchedulerError where the controller does not answer.
    """
    intent = read_json(run.intent)
    if intent is None:
        return None
    base = find_job(intent["name"], intent.get("work_dir", run.path), since=intent.get("time", 0.0))
    if base is None:
        return None
    job_id = f"{base}_{intent['task']}" if "task" in intent else base
    return record(run, cluster="slurm", job_id=job_id, name=intent["name"], recovered=True)


def find_job(name: str, work_dir: str | Path, *, since: float = 0.0) -> str | None:
    """The id of the job, or of the whole array, of this name that works there; None without such a job.

    since  when the job was to be submitted, in seconds since 1970: one that has ended and was submitted
           before is that of an earlier folder of this name, which `--fresh` has put aside

    Raises SchedulerError where the controller does not answer.
    """
    for job in programs.jobs(names=[name]):
        is_older = job.submitted is not None and job.submitted.timestamp() < since - _CLOCKS_S
        if is_older and STATES.get(job.state) in TERMINAL:
            continue
        if os.path.realpath(job.work_dir) == os.path.realpath(work_dir):
            return job.base_id
    return None


def exclusively(run: RunDir) -> AbstractContextManager[None]:
    """Hold the run's submission lock. Raises RunBusy where another process submits it."""
    return hold(run.lock, run.run_id)


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the submission lock of a run or a sweep. Raises RunBusy, which names it."""
    from filelock import FileLock, Timeout  # slow to import, and only needed to submit

    lock = FileLock(path)
    try:
        lock.acquire(timeout=_LOCK_S)
    except Timeout:
        raise RunBusy(f"{what} is being submitted by another process right now") from None
    try:
        yield
    finally:
        lock.release()
