"""Submit runs: the only module that starts jobs or local processes of runs and records them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from slurm.client import programs
from slurm.client.parse import is_job_id
from slurm.client.topology import scrub
from slurm.config.rank_count import local_processes
from slurm.status.decisions import was_cancelled
from slurm.status.rows import status
from slurm.status.submissions import (
    Awaited,
    Submission,
    exclusively,
    last_submission,
    record,
    resolve_lost,
    submissions,
)
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.checks.preflight import preflight
from slurm.submission.submit_job import submit_plan
from toolkit.config import to_yaml
from toolkit.config.schema import Experiment
from toolkit.errors import RunBusy, SlurmUnavailable, StkError
from toolkit.files import temporary_folder, write_atomic
from toolkit.reliability.restart_policy import reset_counters
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import cannot_write, fill_run
from toolkit.run.fence import keep_fenced
from toolkit.run.folder_trust import python_path
from toolkit.run.kept_code.edited_code import edits_since, of_elsewhere, take_new_code
from toolkit.run.new_settings import take_new_settings
from toolkit.run.run_dir import RunDir, archive_run

#: Errors of a rename onto a folder that is not empty.
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass(frozen=True, slots=True)
class Submitted:
    """The result of a submission.

    submission  None if the run has already finished, or is live outside of its newest submission
    joined      the state of a run that was already live; its submission is then the earlier one
    """

    run: RunDir
    submission: Submission | None
    joined: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return the output of `stk submit --json`."""
        submission = self.submission
        return {
            "run_id": self.run.run_id,
            "run_dir": str(self.run.path),
            "job_id": submission.job_id if submission else None,
            "cluster": submission.cluster if submission else None,
            "state": self.joined or ("pending" if submission else "finished"),
        }


def choose_cluster(wanted: str) -> str:
    """Return slurm or local; auto means slurm if a controller answers.

    Raises SlurmUnavailable if slurm is wanted and no controller answers.
    """
    if wanted == "local":
        return "local"
    if programs.is_available():
        return "slurm"
    if wanted == "slurm":
        programs.call("scontrol", "ping")
        raise SlurmUnavailable("no Slurm controller answers: check `scontrol ping`, or use --cluster local")
    return "local"


def submit(
    experiment: Experiment,
    run: RunDir,
    cluster: str,
    *,
    fresh: bool = False,
    new_code: bool = False,
    procs: int | None = None,
    awaits: Awaited | None = None,
) -> Submitted:
    """Submit the experiment's run to Slurm, or to processes on this machine; join an existing run.

    run        the folder of the experiment's run, existing or not
    new_code   whether an existing run continues with the current code
    procs      number of local processes, if not that of the resources
    awaits     a run that must finish first

    Raises RunBusy if the run is live, SlurmRefused with all known limits before anything is written,
    SchedulerError otherwise. The new folder of a refused run is removed again, unless it cannot be locked or
    another command uses it.
    """
    # The cluster may have changed since a run finished.
    if cluster == "slurm" and (fresh or not run.result.exists()):
        check(experiment, run)
        if fresh:
            # These checks must come before the folder is set aside.
            if run.intent.exists():
                with exclusively(run):
                    resolve_lost(run)
            refuse_if_live(run, experiment, must_know=True)
    existed = run.code.exists() and not fresh
    with run_folder(experiment, run, fresh=fresh):
        resolve_if_possible(run, must_know=cluster == "slurm")
        if run.result.exists():
            return Submitted(run, None)
        refuse_if_live(run, experiment, must_know=cluster == "slurm")
        if existed:
            take_new_code(run, experiment, asked=new_code)
            take_new_settings(run, experiment)
        reset_counters(run)
        if cluster == "local":
            return Submitted(run, _start_here(run, experiment, procs, awaits))
        job_id = awaits.job_id if awaits else None
        plan = JobPlan(experiment=experiment, run=run, number=len(submissions(run)), awaits=job_id)
        # Imported here, because planning and status do not need submitit.
        from slurm.submission.job_pickle import pack

        pack(run)
        return Submitted(run, submit_plan(plan, os.environ, **_facts(awaits)))


def check(experiment: Experiment, run: RunDir, awaits: str | None = None) -> None:
    """Raise UserError if no batch script can express the experiment, SlurmRefused if no host fits.

    awaits   any job id, if the run will wait for a job
    """
    str(JobPlan(experiment=experiment, run=run, awaits=awaits))
    preflight(experiment.resources)


def resolve_if_possible(run: RunDir, *, must_know: bool = False) -> None:
    """Find the job of a submitter that died, if a controller answers.

    must_know   whether to raise SlurmUnavailable if none answers: the run must not be submitted twice
    """
    if run.intent.exists() and (must_know or programs.is_available()):
        resolve_lost(run)


def refuse_if_live(run: RunDir, experiment: Experiment, *, must_know: bool = False) -> None:
    """Raise RunBusy if the run is pending, running, requeued or held.

    must_know   whether to raise SlurmUnavailable if Slurm may have a job of the run and does not answer
    """
    (now,) = status([run])
    if must_know:
        now.check_known()
    if now.is_live:
        newest = next(reversed(read_attempts(run)), None)
        if was_cancelled(run, last_submission(run), newest):
            raise RunBusy(f"{run.run_id} is being cancelled: repeat this when stk status shows its end")
        job = f", job {now.job_id}" if now.job_id else ""
        notes = of_elsewhere(run, experiment)
        if not notes and (edits := edits_since(run, experiment)):
            notes = [f"it keeps its stored code, which differs in {edits}"]
        refusal = "; ".join([f"{run.run_id} is {now.state}{job}: it cannot be started twice", *notes])
        other = ", or Ctrl-C if `stk run` trains it in a terminal"
        if is_job_id(now.job_id or ""):
            other = ""
            if now.state != "running":
                other = ". `scontrol update` changes the time limit or partition of a job that waits"
        raise RunBusy(f"{refusal}. stk status {run.run_id} shows it; stk cancel {run.run_id} ends it{other}")


def _facts(awaits: Awaited | None) -> dict[str, str]:
    """Return the facts to record about a run that must finish first."""
    return {"awaits": str(awaits.run.path)} if awaits else {}


def _start_here(run: RunDir, experiment: Experiment, procs: int | None, awaits: Awaited | None) -> Submission:
    """Start a launcher that outlives this command; if another run must finish first, a process that waits."""
    name = f"{run.run_id}.{len(submissions(run))}"
    write_atomic(run.job, to_yaml(experiment.resources))
    words = ["toolkit.launch", str(run.path), str(procs or local_processes(experiment, os.environ))]
    pid = start_detached(run, words, run.launcher_log(name), awaits)
    return record(run, cluster="local", job_id=f"local-{pid}", name=name, **_facts(awaits))


def start_detached(run: RunDir, words: list[str], log: Path, awaits: Awaited | None) -> int:
    """Start `python -P -m WORDS` with a run's own code, to outlive this command; return its process id.

    awaits   a run that must finish first; the waiting process uses the current code
    Raises UserError for a folder whose code cannot be used.
    """
    own = {} if awaits else {"PYTHONPATH": python_path(run, os.environ.get("PYTHONPATH"))}
    if awaits:
        words = ["slurm.submission.follow", str(awaits.run.path), str(run.path), *words]
    with open(log, "ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *words],
            env={**scrub(), **own},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    # A notebook may outlive the process, which must not stay as a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    return process.pid


@contextmanager
def run_folder(experiment: Experiment, run: RunDir, *, fresh: bool) -> Iterator[None]:
    """Make the run's folder, and lock it against other submitters; restore it if the submission fails."""
    with ExitStack() as afterwards, ExitStack() as locked:
        old = begin_anew(experiment, run, locked) if fresh and run.path.exists() else None
        is_new = old is not None or fill_run(run, experiment)
        if old is None:
            locked.enter_context(exclusively(run))
        known = len(submissions(run))
        try:
            if not run.code.exists() or run.code.is_symlink():
                # The previous holder of the lock may have removed the folder after a refusal.
                fill_run(run, experiment)
            yield
        except (StkError, OSError) as error:
            # Another command may train the run, without this lock, or have submitted it.
            if is_new and not any(each.exists() for each in (run.submissions, run.intent, run.alive)):
                take_back(run, old, afterwards)
            if isinstance(error, OSError):
                may_have_job = run.intent.exists() or len(submissions(run)) > known
                raise cannot_write(run, error, may_have_job=may_have_job) from error
            raise


def take_back(run: RunDir, old: Path | None, afterwards: ExitStack) -> None:
    """Remove a run's new folder; bring back the one that `--fresh` has set aside, if there is one.

    On NFS an open file keeps the new folder: it stays, empty, unless the old one comes back.

    afterwards   closed once the caller has released its lock, an open file in the new folder, which is
                 moved away before and deleted then
    """
    if old is None:
        shutil.rmtree(run.path, ignore_errors=True)
        return
    afterwards.callback(shutil.rmtree, archive_run(run), ignore_errors=True)
    old.rename(run.path)


def begin_anew(experiment: Experiment, run: RunDir, locked: ExitStack) -> Path:
    """Replace a run's folder by a new one, locked until `locked` is closed; return where the old one is.

    Raises RunBusy if the run is live or another command begins with it, and what `fill_run` raises.
    """
    with exclusively(run):
        resolve_if_possible(run)
        refuse_if_live(run, experiment)
        try:
            old = _exchange(experiment, run)
        except OSError as error:
            raise cannot_write(run, error) from error
    locked.enter_context(exclusively(run))
    return old


def _exchange(experiment: Experiment, run: RunDir) -> Path:
    """Put a new folder in the place of a run's; return where the old one is."""
    # Complete before others can find it; removed if anything fails.
    with temporary_folder(".new.", run.path.parent) as folder:
        new = RunDir(folder / run.run_id)
        fill_run(new, experiment, place=run)
        keep_fenced(new, run)
        old = archive_run(run)
        try:
            new.path.rename(run.path)
        except BaseException as error:
            with suppress(OSError):
                # Fails if another command has made a folder there.
                old.rename(run.path)
            if isinstance(error, OSError) and error.errno in _TAKEN:
                message = f"another command has just begun with {run.run_id}: repeat the command"
                raise RunBusy(message) from None
            raise
    return old
