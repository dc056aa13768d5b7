"""submissions.jsonl and the intent file: a complete record of submitted jobs."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slurm.client import programs
from slurm.client.queue import STATES, TERMINAL
from slurm.client.stop_reason import job_target
from toolkit.errors import RunBusy, SchedulerError, UserError
from toolkit.files import (
    append_json_line,
    is_still,
    read_json_lines,
    read_object,
    write_atomic,
    write_json,
    write_quickly,
)
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir
from toolkit.system.host import boot

if TYPE_CHECKING:
    from slurm.config.resources import Resources

#: Largest difference of the clocks of a submitter and of the controller, which counts whole seconds.
_CLOCKS_S = 5.0
#: Seconds after a lost answer in which a busy controller may still accept the job.
_LATE_S = 60.0
_LOCK_S = 10.0
_T = TypeVar("_T")
_LOCAL = re.compile(r"local-[1-9]\d{0,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One line of submissions.jsonl.

    cluster   slurm or local
    job_id    Slurm's id, ARRAY_TASK for a task of an array, or `local-<process id of the launcher>`
    host      host on which it was submitted
    boot      boot id of that host (toolkit.system.host); empty if unknown
    name      the job's name; for an array task that of the array
    array     the name of the array if it is an array task; else empty
    awaits    the folder of the run that must finish first; empty if it waits for none
    is_script   whether it is the job of a user's own batch script, which stk cannot submit again or cancel
    """

    cluster: str
    job_id: str
    host: str
    name: str
    time: float
    boot: str = ""
    array: str = ""
    awaits: str = ""
    is_script: bool = False

    @property
    def pid(self) -> int:
        """Process id of a local launcher. Raises ValueError if the job id does not name one."""
        if not _LOCAL.fullmatch(self.job_id):
            raise ValueError(f"{self.job_id[:100]!r} does not name a process")
        return int(self.job_id.removeprefix("local-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A run that must finish before another one begins.

    job_id   the job that trains it; None if it trains on this machine
    """

    run: RunDir
    job_id: str | None


def submissions(run: RunDir) -> list[Submission]:
    """Return all submissions of a run, oldest first; invalid lines are left out."""
    return list(filter(None, map(submission_of, read_json_lines(run.submissions))))


def submission_of(line: Mapping[str, Any]) -> Submission | None:
    """Return the submission of a line of submissions.jsonl; None if it is not one."""
    try:
        return from_json(Submission, line)
    except TypeError:
        return None


def last_submission(run: RunDir) -> Submission | None:
    """Return the newest submission, or None."""
    return next(reversed(submissions(run)), None)


def last_resources(run: RunDir) -> Resources:
    """Return the resources of the last submission; for a run that was never submitted, its config's."""
    from toolkit.config import load_resolved

    resources: Resources = load_resolved(run.config, run.job).resources
    return resources


def record(run: RunDir, *, cluster: str, job_id: str, name: str, **facts: Any) -> Submission:
    """Record an accepted submission, and remove the intent."""
    line = _line(cluster=cluster, job_id=job_id, name=name, **facts)
    append_json_line(run.submissions, line)
    run.intent.unlink(missing_ok=True)
    submission = submission_of(line)
    assert submission is not None
    return submission


def _line(**facts: Any) -> dict[str, Any]:
    """Return a line of submissions.jsonl: these facts, and from where it is submitted."""
    here = {"host": socket.gethostname(), "time": time.time(), "boot": boot()}
    return here | facts


def record_script(run: RunDir, environ: Mapping[str, str]) -> None:
    """Record a requeued job of a user's own batch script, so that the run is found while it waits again."""
    # Slurm sets ENVIRONMENT in batch scripts alone, and their steps inherit it: not in the shell of salloc.
    if environ.get("ENVIRONMENT") != "BATCH":
        return
    job_id, name = job_target(environ), environ.get("SLURM_JOB_NAME", "")
    # A full disk must not keep the job from going on.
    with suppress(OSError):
        if read_object(run.intent).get("name") == name:
            # A submission whose submitter died: `recover` records it.
            return
        if all(one.job_id != job_id for one in submissions(run)):
            line = _line(cluster="slurm", job_id=job_id, name=name, is_script=True)
            append_json_line(run.submissions, line)


def intend(run: RunDir, name: str, *, durable: bool = True, **facts: Any) -> None:
    """Record the name of a job before sbatch is called.

    durable  False if another file has the same facts after a crash of the machine
    facts    what `recover` needs to record the job: its `resources` as YAML, and further `facts`; or, for an
             array task, its number as `task`, and the working directory of the array as `work_dir`
    """
    known = {"name": name, "time": time.time(), "host": socket.gethostname(), "pid": os.getpid()}
    if durable:
        write_json(run.intent, known | facts)
    else:
        write_quickly(run.intent, json.dumps(known | facts) + "\n")


def resolve_lost(run: RunDir) -> Submission | None:
    """Find the job of a submitter that died before it recorded the id; without a job, remove the intent.

    Raises SchedulerError if the controller does not answer, AnswerLost if the job may still be created.
    """
    found = recover(run)
    if found is None:
        check_late(run)
        run.intent.unlink(missing_ok=True)
    return found


def check_late(run: RunDir) -> None:
    """Raise AnswerLost if sbatch's answer was lost so recently that the job may still be created."""
    left = read_object(run.intent).get("lost", 0.0) + _LATE_S - time.time()
    if left > 0:
        raise programs.AnswerLost(
            f"it is not known whether Slurm has taken the job of {run.run_id}: repeat the command in "
            f"{left:.0f} s"
        )


def mark_lost(run: RunDir) -> None:
    """Record in the intent that the answer of sbatch was lost now."""
    write_json(run.intent, read_object(run.intent) | {"lost": time.time()})


def found_or_lost(lost: programs.AnswerLost, find: Callable[[], _T | None], hint: str) -> _T:
    """Return what `find` finds of a job that may exist although sbatch's answer was lost.

    Raises AnswerLost with the hint if it finds nothing: the controller may still create the job.
    """
    with suppress(SchedulerError):
        if (found := find()) is not None:
            return found
    raise programs.AnswerLost(f"{lost}\n{hint}") from lost


def recover(run: RunDir) -> Submission | None:
    """Record and return the job of an intent, with its resources; None if there is no intent or no job.

    Names are unique in a run, and a job's working directory is that of the run or the array, so another job
    with the same name is not mistaken for it. Raises SchedulerError if the controller does not answer.
    """
    intent = read_object(run.intent)
    if "name" not in intent:
        return None
    base = find_job(intent["name"], intent.get("work_dir", run.path), since=intent.get("time", 0.0))
    return None if base is None else record_found(run, intent, base)


def record_found(run: RunDir, intent: Mapping[str, Any], base: str) -> Submission:
    """Record the job of an intent; base: its id, or that of its array."""
    name, facts = intent["name"], intent.get("facts", {})
    job_id, array = (f"{base}_{intent['task']}", {"array": name}) if "task" in intent else (base, {})
    if "resources" in intent:
        write_atomic(run.job, intent["resources"])
    # The time of the submission, with which attempts and failures are compared.
    facts = {"time": intent.get("time", time.time()), "recovered": True, **array, **facts}
    return record(run, cluster="slurm", job_id=job_id, name=name, **facts)


def recover_lost(run: RunDir) -> None:
    """Record the job of a submitter that died; without a job, remove the intent.

    Raises RunBusy, also if Slurm may still take the job, and SchedulerError.
    """
    if run.intent.exists():
        with exclusively(run):
            if recover(run) is None:
                try:
                    check_late(run)
                except programs.AnswerLost as late:
                    raise RunBusy(str(late)) from None
                run.intent.unlink(missing_ok=True)


def find_job(name: str, work_dir: str | Path, *, since: float = 0.0) -> str | None:
    """Return the id of the job or array with this name and working directory; None without one.

    since  time of the intent, in seconds since 1970; an ended job that was submitted earlier belongs to a
           folder that `--fresh` has set aside

    Raises SchedulerError if the controller does not answer.
    """
    for job in programs.jobs(names=[name]):
        is_older = job.submitted is not None and job.submitted.timestamp() < since - _CLOCKS_S
        if is_older and STATES.get(job.state) in TERMINAL:
            continue
        if os.path.realpath(job.work_dir) == os.path.realpath(work_dir):
            return job.base_id
    return None


def exclusively(run: RunDir) -> AbstractContextManager[None]:
    """Hold the run's submission lock. Raises RunBusy if another process holds it."""
    return hold(run.lock, run.run_id)


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Hold the submission lock of a run or a sweep.

    Raises RunBusy with its name, `what`, also if its folder is moved or removed meanwhile; UserError for a
    folder of another user; OSError.
    """
    from filelock import FileLock, Timeout  # slow to import, and only needed to submit

    lock = FileLock(path)
    moved = RunBusy(f"another command has just set {what} aside or removed it: repeat the command")
    try:
        folder = path.parent.stat() if path.parent.exists() else None
        lock.acquire(timeout=_LOCK_S)
    except Timeout:
        raise RunBusy(f"{what} is being submitted by another process right now") from None
    except FileNotFoundError:
        raise moved from None
    except PermissionError:
        if path.parent.stat().st_uid == os.geteuid():
            raise UserError(f"cannot write {path}: permission denied, although its folder is yours") from None
        raise UserError(
            f"{what} belongs to another user, who alone can submit, continue and cancel it; stk reproduce "
            "makes a run of your own"
        ) from None
    except OSError as error:
        if error.filename is not None:
            raise
        # The answer of a file system without locks, which does not name the file.
        hint = "it cannot be locked. STK_EXPERIMENT_DIR chooses another place"
        raise OSError(error.errno, f"{error.strerror}: {hint}", str(path)) from error
    try:
        # The lock file moves with its folder.
        if folder and not is_still(path.parent, folder):
            raise moved
        yield
    finally:
        lock.release()
