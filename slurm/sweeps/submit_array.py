"""Submit one array of a sweep: like single submissions, but with one call of sbatch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from slurm.client import programs
from slurm.status.rows import status
from slurm.status.submissions import (
    Submission,
    check_late,
    exclusively,
    find_job,
    found_or_lost,
    hold,
    intend,
    mark_lost,
    record,
    record_found,
    submissions,
)
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.submit import resolve_if_possible
from slurm.submission.submit_job import environment
from slurm.sweeps.array import TASK_SCRIPT, ArrayPlan
from slurm.sweeps.candidates import Candidate
from toolkit.config import to_yaml
from toolkit.errors import StkError, UserError
from toolkit.files import read_json, read_object, write_quickly
from toolkit.reliability.restart_policy import reset_counters
from toolkit.run.create_run import fill_run
from toolkit.run.run_dir import RunDir
from toolkit.sweeps.folder import Array, SweepDir, intend_array, read_arrays, settle_array


def submit_array(
    sweep: SweepDir,
    name: str,
    wanted: Sequence[Candidate],
    code: Mapping[RunDir, Path],
    *,
    throttle: int | None,
    after: Sequence[str],
    tick: Callable[[], None],
) -> dict[RunDir, Submission]:
    """Submit runs as one job array; runs that another process started meanwhile are left out.

    name      unique name of the array
    code      folder with the code of each new run
    throttle  tasks that run at the same time; after: arrays that must have ended before
    tick      called for each run whose files are written
    Returns the submission of each submitted run. Raises SchedulerError; new folders of a refused array are
    removed again.
    """
    # Locked in a fixed order, so that two sweeps with the same runs do not deadlock.
    ordered = sorted(wanted, key=lambda one: one.run.run_id)
    made: list[RunDir] = []
    with ExitStack() as stack:
        try:
            for one in ordered:
                is_new = fill_run(one.run, one.experiment, shared_code=code.get(one.run, one.run.code))
                stack.enter_context(exclusively(one.run))
                if not one.run.code.exists():
                    # The previous holder of the lock may have removed the folder after a refusal.
                    fill_run(one.run, one.experiment, shared_code=code.get(one.run))
                    is_new = True
                if is_new:
                    # Only under its lock: until then another command may begin with the folder.
                    made.append(one.run)
            plans = tuple(
                JobPlan(experiment=one.experiment, run=one.run, number=len(submissions(one.run)))
                for one in _with_current_states(wanted)
                if not one.skipped
            )
            if not plans:
                return {}
            array = ArrayPlan(
                plans=plans, folder=sweep.array(name), max_parallel=throttle, after=tuple(after)
            )
            job_id = _submit(sweep, array, tick)
        except programs.AnswerLost:
            raise
        except KeyboardInterrupt:
            # Before sbatch was called, there is no job; after that, the same command finds the job.
            if not _script(sweep.array(name)).exists():
                _forget(sweep.array(name), [one.run for one in wanted])
                _remove_new_folders(made)
            else:
                for run in (one.run for one in wanted if one.run.intent.exists()):
                    mark_lost(run)
            raise
        except (StkError, OSError) as error:
            _remove_new_folders(made)
            if isinstance(error, OSError):
                place = "STK_EXPERIMENT_DIR chooses another place"
                raise UserError(f"cannot write the folders of the runs: {error}. {place}.") from error
            raise
        return _record(array, job_id)


def _remove_new_folders(made: Sequence[RunDir]) -> None:
    """Remove new folders of runs that were neither submitted nor started by another command."""
    for run in made:
        if not run.submissions.exists() and not run.intent.exists() and not run.alive.exists():
            shutil.rmtree(run.path, ignore_errors=True)


def _with_current_states(wanted: Sequence[Candidate]) -> list[Candidate]:
    """Read the states again, under the locks; return the runs with them. Raises SchedulerError."""
    for one in wanted:
        resolve_if_possible(one.run, must_know=True)
    known = [
        one for one in wanted if one.now is not None or one.run.submissions.exists() or one.run.alive.exists()
    ]
    now = dict(zip((one.run for one in known), status([one.run for one in known]), strict=True))
    for row in now.values():
        row.check_known()
    return [replace(one, now=now.get(one.run)) for one in wanted]


def _submit(sweep: SweepDir, array: ArrayPlan, tick: Callable[[], None]) -> str:
    """Submit the array; record it before and after sbatch, also in every run. Return its id."""
    try:
        script = _write_task_files(array, tick)
        runs = [plan.run.run_id for plan in array.plans]
        intend_array(sweep, array.name, runs, array.max_parallel)
        job_id = _call_sbatch(array, script)
    except programs.AnswerLost:
        raise
    except (StkError, OSError):
        _forget(array.folder, [plan.run for plan in array.plans])
        settle_array(sweep, array.name, None)
        raise
    settle_array(sweep, array.name, job_id)
    return job_id


def _forget(folder: Path, runs: Sequence[RunDir]) -> None:
    """Delete the records of an array that was not submitted."""
    for run in runs:
        if (read_json(run.intent) or {}).get("name") == folder.name:
            run.intent.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _script(folder: Path) -> Path:
    """Return the path of an array's batch script, the last file that is written before sbatch is called."""
    return folder / "script.sh"


def _write_task_files(array: ArrayPlan, tick: Callable[[], None]) -> Path:
    """Write the files of all tasks and the intents; return the batch script."""
    # Imported here, because planning and status do not need submitit.
    from slurm.submission.job_pickle import pack

    array.folder.mkdir(mode=0o755)
    for task, plan in enumerate(array.plans):
        reset_counters(plan.run)
        pack(plan.run)
        write_quickly(plan.run.submitit / TASK_SCRIPT, str(plan))
        # The folder of sweeps may be a link.
        path = os.path.relpath(plan.run.path.resolve(), array.folder.resolve())
        (array.folder / str(task)).symlink_to(path)
        intend(plan.run, array.name, durable=False, task=task, work_dir=str(array.folder))
        tick()
    script = _script(array.folder)
    write_quickly(script, str(array))
    return script


def _call_sbatch(array: ArrayPlan, script: Path) -> str:
    """Call sbatch once and return the array's id; if the answer was lost, find the array by its name."""
    try:
        return programs.sbatch(script, cwd=array.folder, env=environment(array.plans[0].run, os.environ))
    except programs.AnswerLost as lost:
        hint = (
            "The jobs may exist nevertheless: repeat the command. It looks for the jobs first, so that no "
            "run is submitted twice."
        )
        try:
            return found_or_lost(lost, lambda: find_job(array.name, array.folder), hint)
        except programs.AnswerLost:
            for plan in array.plans:
                mark_lost(plan.run)
            raise


def _record(array: ArrayPlan, job_id: str) -> dict[RunDir, Submission]:
    """Record the job's id and the requested resources in every run."""
    jobs, resources = {}, to_yaml(array.plans[0].resources)
    for task, plan in enumerate(array.plans):
        write_quickly(plan.run.job, resources)
        jobs[plan.run] = record(
            plan.run,
            cluster="slurm",
            job_id=f"{job_id}_{task}",
            name=array.name,
            world_size=plan.world_size,
            array=array.name,
        )
    return jobs


def settle_arrays(sweep: SweepDir) -> None:
    """Find the arrays of a submitter that died before it recorded their ids, with one call for each.

    Does nothing without a controller. Raises RunBusy if another process submits runs of the sweep.
    """
    if not unsettled_arrays(sweep) or not programs.is_available():
        return
    with hold(sweep.lock, f"the sweep {sweep.name}"):
        for array in unsettled_arrays(sweep):
            job_id = find_job(array.name, sweep.array(array.name))
            if job_id is None:
                check_late(sweep.run(array.runs[0]))
            _settle(sweep, array, job_id)
            settle_array(sweep, array.name, job_id)


def unsettled_arrays(sweep: SweepDir) -> list[Array]:
    return [array for array in read_arrays(sweep) if array.job_id is None]


def _settle(sweep: SweepDir, array: Array, job_id: str | None) -> None:
    """Record the job in each run of an array; without a job, remove the intents."""
    for task, run_id in enumerate(array.runs):
        run = sweep.run(run_id)
        # A file that was not flushed to the disk may be empty after a crash of the machine.
        intent = {"name": array.name, **read_object(run.intent), "task": task}
        if not run.intent.exists() or intent["name"] != array.name:
            continue
        if job_id is None:
            run.intent.unlink(missing_ok=True)
        else:
            record_found(run, intent, job_id)
