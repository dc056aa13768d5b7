"""Submit a plan with sbatch; record it before and after, so that no job is lost or submitted twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from slurm.client import programs
from slurm.client.hostlist import expand
from slurm.client.queue import poll
from slurm.client.topology import scrub
from slurm.config.resources import Resources
from slurm.status.submissions import (
    Submission,
    exclusively,
    found_or_lost,
    intend,
    last_resources,
    mark_lost,
    record,
    recover,
    submissions,
)
from slurm.submission.batch.batch_script import JobPlan
from toolkit.config import load_resolved, to_yaml
from toolkit.errors import SchedulerError, SlurmRefused, StkError
from toolkit.files import write_atomic
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir

#: Variables that Slurm sets for the devices of a job; a new job gets its own.
_DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL")
#: Told with a lost answer. The intent is kept then.
_REPEAT = (
    "The job may exist nevertheless: repeat the command. It looks for the job first, so that the run is "
    "never submitted twice."
)

#: Seconds for changing dependencies of other jobs: the controller may be busy, and this job is ending.
_MOVE_TIMEOUT_S = 20.0


def submit_plan(plan: JobPlan, environ: Mapping[str, str], **facts: Any) -> Submission:
    """Submit a plan as `sbatch` does, and record it. The run must be locked.

    facts   further facts to record

    Raises AnswerLost if the job may exist although the answer was lost: the next command finds it by its
    name. Other errors are raised after the intent is removed.
    """
    run = plan.run
    facts = {"world_size": plan.world_size, **facts}
    resources = to_yaml(plan.resources)
    intend(run, plan.job_name, facts=facts, resources=resources)
    try:
        job_id = sbatch(plan, environ)
    except programs.AnswerLost as lost:
        mark_lost(run)
        return found_or_lost(lost, lambda: recover(run), _REPEAT)
    except KeyboardInterrupt:
        # The controller may still create the job: the next command waits for it.
        mark_lost(run)
        raise
    except StkError:
        run.intent.unlink(missing_ok=True)
        raise
    submission = record(run, cluster="slurm", job_id=job_id, name=plan.job_name, **facts)
    # After the submission: `stk resume` must not use resources that were refused.
    write_atomic(run.job, resources)
    return submission


def make_submitit(run: RunDir) -> None:
    """Make the folder for pickles and scripts. A pickle is code, so other users get no access."""
    run.submitit.mkdir(mode=0o700, exist_ok=True)


def sbatch(plan: JobPlan, environ: Mapping[str, str]) -> str:
    """Submit a plan and return the job's id; as with submitit, the script is named after the id.

    A job inherits the environment of its submission; SLURM_* variables of a surrounding job would change
    its steps. All other files of the job must exist already. Raises SchedulerError.
    """
    script = plan.run.submitit / "script.sh"
    script.write_text(str(plan), encoding="utf-8")
    try:
        job_id = programs.sbatch(script, cwd=plan.run.path, env=environment(plan.run, environ))
        script.rename(script.with_name(f"{job_id}_submission.sh"))
    finally:
        script.unlink(missing_ok=True)
    return job_id


def environment(run: RunDir, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a job, without variables of a surrounding job and of its own script."""
    kept = scrub(environ)
    if "SLURM_JOB_ID" in environ:
        for name in _DEVICES:
            kept.pop(name, None)
    # The script prepends the run's code, so the list would grow from job to job.
    paths = kept.get("PYTHONPATH", "").split(os.pathsep)
    if any(paths):
        # Absolute paths, because the job starts in another folder.
        own = (os.path.abspath(path) for path in paths if path != str(run.code))
        kept["PYTHONPATH"] = os.pathsep.join(own)
    return kept


def chain(run: RunDir, job_id: str, environ: Mapping[str, str], exclude: Iterable[str] = ()) -> Submission:
    """Submit a run again from inside its job, to start after the end of the job. May be called twice.

    environ   environment at the start of this process
    exclude   hosts that the next job must not use, besides those already excluded

    Raises SlurmRefused if the job is not a submission of the run, because a user's own script cannot be
    submitted again here. Raises RunBusy and SchedulerError.
    """
    with exclusively(run):
        # Without waiting for a late job: the job of this process has little time left.
        recover(run)
        known = submissions(run)
        own = [number for number, one in enumerate(known) if one.job_id == job_id and not one.is_script]
        if not own:
            raise SlurmRefused(f"job {job_id} was not submitted by stk: there is no plan to submit again")
        following = _live_follower(known[own[-1] + 1 :])
        if following is None:
            resources = without_hosts(last_resources(run), names_of_slurm(exclude, environ))
            experiment = replace(load_resolved(run.config), resources=resources)
            plan = JobPlan(experiment=experiment, run=run, number=len(known), after=job_id)
            following = submit_plan(plan, environ)
        _let_dependants_follow(run, job_id, following.job_id)
        return following


def names_of_slurm(hosts: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return Slurm's names of hosts: on many clusters without the domain."""
    known = expand(environ.get("SLURM_JOB_NODELIST", ""))
    is_short = all("." not in name for name in known)
    return [host.partition(".")[0] if is_short else host for host in hosts]


def move_dependants(old: str, new: str) -> list[str]:
    """Let all jobs of the user that wait for the job `old` wait for `new`; return their ids. Idempotent.

    Also changes dependencies that a user's script has made. Raises SchedulerError.
    """
    found = {
        job_id: words
        for job_id, words in programs.dependencies(str(os.getuid())).items()
        # The components of a heterogeneous job `new` would wait for their own job.
        if job_id.partition("+")[0] != new and renamed(words, old, new) != words
    }
    refusals = []
    for job_id, words in found.items():
        try:
            programs.depend_on(job_id, renamed(words, old, new))
        except SlurmRefused as refusal:
            # The job may have ended; change the other jobs nevertheless.
            refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return list(found)


def renamed(words: str, old: str, new: str) -> str:
    """Return a dependency in which `new` replaces `old`: afterok:12:13?after:12+5 -> afterok:14:13?…"""
    # The whole id: after a colon, not as part of a longer id or of an array task's.
    return re.sub(rf"(?<=:){re.escape(old)}(?![\d_])", new, words)


def _let_dependants_follow(run: RunDir, old: str, new: str) -> None:
    """Let jobs that wait for the run's old job wait for its new job, because the old one will not succeed."""
    try:
        moved = programs.patiently(lambda: move_dependants(old, new), _MOVE_TIMEOUT_S)
    except SchedulerError as error:
        note_event(run, "dependants_lost", job_id=old, next_job_id=new, reason=str(error))
        return
    if moved:
        note_event(run, "dependants", job_id=old, next_job_id=new, jobs=moved)


def _live_follower(later: list[Submission]) -> Submission | None:
    """Return a later job of the run that is pending or running; None without one."""
    ids = [one.job_id for one in later if one.cluster == "slurm"]
    states = poll(ids) if ids else {}
    return next((one for one in later if one.job_id in states and not states[one.job_id].is_terminal), None)


def excludable(resources: Resources, hosts: Iterable[str]) -> list[str]:
    """Return the hosts that a job can do without: all but those that its resources name."""
    named = resources.nodelist or ""
    if resources.hosts or "/" in named:
        # The job needs exactly the hosts of `resources.hosts`; sbatch alone reads a file of hosts.
        return []
    return [host for host in hosts if host not in expand(named)]


def without_hosts(resources: Resources, exclude: Iterable[str]) -> Resources:
    """Return resources that also exclude these hosts, as far as possible; unchanged for a file of hosts."""
    known = resources.exclude or ""
    if "/" in known:
        # sbatch reads this file of hosts, and accepts no list in addition.
        return resources
    added = sorted(set(excludable(resources, exclude)) - set(expand(known)))
    return replace(resources, exclude=",".join(filter(None, [known, *added]))) if added else resources
