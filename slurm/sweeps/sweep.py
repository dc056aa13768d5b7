"""Submitting many runs as one job array: like single submissions, but for one call of sbatch."""

from __future__ import annotations

import os
import resource
import shutil
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from slurm import controller
from slurm.plan import JobPlan
from slurm.preflight import preflight
from slurm.sbatch import environment
from slurm.status.rows import RunStatus, status
from slurm.submissions import Submission, find_job, intend, record, submissions
from slurm.submit import run_folder, settle_if_possible
from slurm.sweeps.array import TASK_SCRIPT, ArrayPlan
from toolkit.attempts.recovery import release
from toolkit.config import run_id, to_yaml
from toolkit.config.schema import Experiment
from toolkit.errors import SchedulerError, StkError
from toolkit.files import write_atomic
from toolkit.rundir import RunDir

#: Beside the runs: a folder for each array.
SWEEPS = "sweeps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One run of a sweep, and where it stands before.

    skipped   why it is not started: it has finished, or is live already; empty where it is to be started
    """

    experiment: Experiment
    run: RunDir
    now: RunStatus

    @property
    def skipped(self) -> str:
        if self.now.state == "finished":
            return "has finished"
        job = f", job {self.now.job_id}" if self.now.job_id else ""
        return f"is {self.now.state}{job}" if self.now.is_live else ""


def candidates(experiments: Sequence[Experiment], parent: Path) -> list[Candidate]:
    """Where the runs of these experiments stand, each run once; with two scheduler calls in all."""
    by_run = {RunDir(parent / run_id(each)): each for each in experiments}
    rows = zip(by_run.items(), status(list(by_run)), strict=True)
    return [Candidate(experiment=experiment, run=run, now=now) for (run, experiment), now in rows]


def submit_array(
    wanted: Sequence[Candidate], parent: Path, max_parallel: int | None = None
) -> dict[RunDir, Submission]:
    """Hand runs to Slurm as one job array; those that somebody else started meanwhile are left out.

    max_parallel   tasks that run at the same time; None: as resources.max_parallel says
    Returns the submission of each run that was handed in. Raises SlurmRefused with all known limits before
    anything is written, SchedulerError otherwise; what was made for a refused array is taken away again.
    """
    resources = wanted[0].experiment.resources
    throttle = resources.max_parallel if max_parallel is None else max_parallel
    folder = parent / SWEEPS / f"{wanted[0].experiment.name}-{uuid.uuid4().hex[:8]}"
    _check(wanted, folder, throttle)
    _allow_open_files(len(wanted))
    with ExitStack() as stack:
        # In one order, so that two sweeps of the same runs do not wait for each other.
        for one in sorted(wanted, key=lambda each: each.run.run_id):
            stack.enter_context(run_folder(one.experiment, parent, fresh=False))
        plans = _plans([one for one in _again(wanted) if not one.skipped])
        if not plans:
            return {}
        return _hand_in(ArrayPlan(plans=plans, folder=folder, max_parallel=throttle))


def _check(wanted: Sequence[Candidate], folder: Path, throttle: int | None) -> None:
    """Raise UserError for what no batch script can hold, SlurmRefused for what no host can give."""
    plans = _plans(wanted)
    str(ArrayPlan(plans=plans, folder=folder, max_parallel=throttle))
    for plan in plans:
        str(plan)
    preflight(plans[0].resources, array_size=len(plans))


def _plans(wanted: Sequence[Candidate]) -> tuple[JobPlan, ...]:
    return tuple(
        JobPlan(
            experiment=one.experiment,
            resources=one.experiment.resources,
            run=one.run,
            number=len(submissions(one.run)),
        )
        for one in wanted
    )


def _allow_open_files(runs: int) -> None:
    """Each run is held by a lock, which is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = runs + 256
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _again(wanted: Sequence[Candidate]) -> list[Candidate]:
    """Where the runs stand now that nobody else can submit them."""
    for one in wanted:
        settle_if_possible(one.run)
    rows = zip(wanted, status([one.run for one in wanted]), strict=True)
    return [Candidate(experiment=one.experiment, run=one.run, now=now) for one, now in rows]


def _hand_in(array: ArrayPlan) -> dict[RunDir, Submission]:
    """Write the array down before and after sbatch, in every run, as for a single job."""
    try:
        script = _write(array)
        job_id = _ask(array, script)
    except controller.AnswerLost:
        raise
    except (StkError, OSError):
        for plan in array.plans:
            plan.run.intent.unlink(missing_ok=True)
        shutil.rmtree(array.folder, ignore_errors=True)
        raise
    return {plan.run: _record(array, task, job_id) for task, plan in enumerate(array.plans)}


def _write(array: ArrayPlan) -> Path:
    """Make all that the tasks need, and write down what is going to be asked; return the script."""
    # submitit is imported late: planning and status do without it.
    from slurm.executor import pack

    array.folder.mkdir(parents=True)
    for task, plan in enumerate(array.plans):
        release(plan.run)
        pack(plan.run)
        write_atomic(plan.run.submitit / TASK_SCRIPT, str(plan))
        (array.folder / str(task)).symlink_to(Path("..", "..", plan.run.run_id))
        intend(plan.run, array.name, task=task, work_dir=str(array.folder))
    script = array.folder / "script.sh"
    write_atomic(script, str(array))
    return script


def _ask(array: ArrayPlan, script: Path) -> str:
    """Call sbatch once; a job whose answer was lost is looked for by its name. Returns the array's id."""
    try:
        return controller.sbatch(script, cwd=array.folder, env=environment(array.plans[0].run, os.environ))
    except controller.AnswerLost as lost:
        with suppress(SchedulerError):
            if (found := find_job(array.name, array.folder)) is not None:
                return found
        raise controller.AnswerLost(
            f"{lost}\nThe jobs may come to be all the same: the same command again looks for them first, "
            "so that no run is ever submitted twice."
        ) from lost


def _record(array: ArrayPlan, task: int, job_id: str) -> Submission:
    plan = array.plans[task]
    write_atomic(plan.run.job, to_yaml(plan.resources))
    return record(
        plan.run,
        cluster="slurm",
        job_id=f"{job_id}_{task}",
        name=array.name,
        world_size=plan.world_size,
        array=array.name,
    )
