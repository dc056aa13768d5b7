"""Submit a plan with sbatch, recorded before and after, so that no job is lost or submitted twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from slurm.client import programs
from slurm.client.hostlist import expand
from slurm.client.queue import poll
from slurm.client.retarget import move_dependants
from slurm.client.topology import scrub
from slurm.config.resources import Resources
from slurm.status.submissions import (
    Submission,
    exclusively,
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

#: What Slurm sets for the devices of one job; the next one gets its own.
_DEVICES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL")

#: Seconds for moving what waits for a job: a busy controller may not answer at once, and the job is ending.
_TO_MOVE_S = 20.0


def submit_plan(plan: JobPlan, launch: Callable[[], str], **facts: Any) -> Submission:
    """Submit a plan by `launch`, which returns the job's id, and write it down. Under the run's lock.

    facts   to be written down, too

    Raises AnswerLost where the job may exist although its answer was lost: the next command finds it by its
    name. Raises what else launch raised, with nothing left behind.
    """
    run = plan.run
    intend(run, plan.job_name)
    try:
        job_id = launch()
    except programs.AnswerLost as lost:
        return _find_lost(run, lost)
    except StkError:
        run.intent.unlink(missing_ok=True)
        raise
    # Only now: what is refused must not be what a later `stk resume` asks for.
    write_atomic(run.job, to_yaml(plan.resources))
    size = plan.world_size
    return record(run, cluster="slurm", job_id=job_id, name=plan.job_name, world_size=size, **facts)


def _find_lost(run: RunDir, lost: programs.AnswerLost) -> Submission:
    """Find a job by its name, which may exist although sbatch did not report it.

    The intent stays where it is not found: the controller may still be busy with it.
    """
    with suppress(SchedulerError):
        if (found := recover(run)) is not None:
            return found
    mark_lost(run)
    raise programs.AnswerLost(
        f"{lost}\nThe job may exist all the same: the same command again looks for it first, "
        "so that the run is never submitted twice."
    ) from lost


def make_submitit(run: RunDir) -> None:
    """Make the folder for pickles and scripts. A pickle is code, so no other user may enter."""
    run.submitit.mkdir(mode=0o700, exist_ok=True)


def sbatch(plan: JobPlan, environ: Mapping[str, str]) -> str:
    """Submit a plan and return the job's id; as with submitit, the script is then named after it.

    A job inherits the environment it was submitted from; SLURM_* of a surrounding job would shape its
    steps. What the script needs besides itself is there already. Raises SchedulerError.
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
    """Return the environment of a job: without a surrounding job's, and without what its own script adds."""
    kept = scrub(environ)
    if "SLURM_JOB_ID" in environ:
        for name in _DEVICES:
            kept.pop(name, None)
    # The script puts the run's code in front; from job to job the list would grow.
    paths = kept.get("PYTHONPATH", "").split(os.pathsep)
    if any(paths):
        # A job starts in another folder than this process.
        own = (os.path.abspath(path) for path in paths if path != str(run.code))
        kept["PYTHONPATH"] = os.pathsep.join(own)
    return kept


def chain(run: RunDir, job_id: str, environ: Mapping[str, str], exclude: Iterable[str] = ()) -> Submission:
    """Submit a run again from inside its job, to start as soon as that has ended. May be done twice.

    environ   of this process as it was started
    exclude   hosts that the next job is not to use, besides those excluded before

    Raises SlurmRefused where that job is not a submission of the run: a user's script cannot be made again
    here. Raises RunBusy and SchedulerError.
    """
    with exclusively(run):
        # One that is not found is given up at once: the job around this process has little time left.
        recover(run)
        known = submissions(run)
        own = [number for number, one in enumerate(known) if one.job_id == job_id]
        if not own:
            raise SlurmRefused(f"job {job_id} was not submitted by stk: there is no plan to submit again")
        if (follower := _live_follower(known[own[-1] + 1 :])) is not None:
            _bring_along(run, job_id, follower.job_id)
            return follower
        resources = without_hosts(last_resources(run), _names_of_slurm(exclude, environ))
        experiment = replace(load_resolved(run.config), resources=resources)
        plan = JobPlan(experiment=experiment, run=run, number=len(known), after=job_id)
        following = submit_plan(plan, lambda: sbatch(plan, environ))
        _bring_along(run, job_id, following.job_id)
        return following


def _names_of_slurm(hosts: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """The names of hosts as Slurm has them: in many clusters without the domain that the hosts give."""
    known = expand(environ.get("SLURM_JOB_NODELIST", ""))
    is_short = all("." not in name for name in known)
    return [host.partition(".")[0] if is_short else host for host in hosts]


def _bring_along(run: RunDir, old: str, new: str) -> None:
    """Let what waits for the run's old job wait for its new one: the old one does not end well."""
    try:
        moved = programs.patiently(lambda: move_dependants(old, new), _TO_MOVE_S)
    except SchedulerError as error:
        note_event(run, "dependants_lost", job_id=old, next_job_id=new, reason=str(error))
        return
    if moved:
        note_event(run, "dependants", job_id=old, next_job_id=new, jobs=moved)


def _live_follower(later: list[Submission]) -> Submission | None:
    """A later job of the run that still waits or runs."""
    ids = [one.job_id for one in later if one.cluster == "slurm"]
    states = poll(ids) if ids else {}
    return next((one for one in later if one.job_id in states and not states[one.job_id].is_terminal), None)


def without_hosts(resources: Resources, exclude: Iterable[str]) -> Resources:
    """Resources that also leave these hosts out."""
    if resources.hosts:
        # Those alone are wanted: without one of them the job could never start.
        return resources
    known = resources.exclude or ""
    if "/" in known:
        # A file of hosts is for sbatch to read, which takes no list beside it.
        return resources
    added = sorted(set(exclude) - set(expand(known)))
    return replace(resources, exclude=",".join(filter(None, [known, *added]))) if added else resources
