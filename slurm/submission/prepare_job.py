"""Submit the preparation of data as a separate job."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass, replace

from slurm.client.queue import poll
from slurm.client.stop_reason import WARNING_SIGNAL
from slurm.status.submissions import last_submission, submissions
from slurm.submission.batch.batch_script import JobPlan
from slurm.submission.batch.job_options import Component, signal_lead_s
from slurm.submission.batch.single_task import single_task, without_gpus
from slurm.submission.checks.preflight import preflight
from slurm.submission.submit import Submitted, resolve_if_possible, run_folder
from slurm.submission.submit_job import make_submitit, submit_plan
from toolkit.config import to_yaml
from toolkit.config.schema import Experiment
from toolkit.files import make_like_parent, write_atomic
from toolkit.run.create_run import cannot_write, fill_run, run_of
from toolkit.run.run_dir import PREPARATIONS, RunDir, experiment_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePlan(JobPlan):
    """The submission of `stk prepare --cluster slurm`; str(plan) is the batch script.

    run   not the run of the training, but a separate folder with config, code, logs and submissions
    """

    def options(self) -> dict[str, object]:
        # B sends the signal to the batch script, because the preparation runs in it and has no step.
        warning = f"B:{WARNING_SIGNAL}@{signal_lead_s(self.resources)}"
        # `stk logs` finds the log as that of rank 0.
        return {**JobPlan.options(self), "output": "logs/%j.rank_00000.log", "signal": warning}

    def _launch(self, parts: tuple[Component, ...]) -> list[str]:
        command = [self.python, "-P", "-u", "-m", "slurm.job.preparation", str(self.run.path)]
        return [
            "# A warning may come before Python handles it.",
            f"trap '' {WARNING_SIGNAL}",
            f"exec {shlex.join(command)}",
        ]


def as_preparation(experiment: Experiment, cpus: int | None = None) -> Experiment:
    """Return the experiment for its preparation: one task on one host, with one process for each CPU.

    cpus   None: resources.cpus_per_task
    """
    resources = experiment.resources
    count = cpus or resources.cpus_per_task or 1
    # Only the preparation of a model may use a GPU.
    gpus = {} if experiment.model.needs_preparation else without_gpus(resources)
    changed = single_task(resources, cpus_per_task=count, **gpus)
    return replace(experiment, data=experiment.data.with_workers(count), resources=changed)


def submit_preparation(experiment: Experiment, cpus: int | None = None) -> Submitted:
    """Submit the preparation of an experiment's data to Slurm, or join its pending or running job.

    Raises SlurmRefused with all known limits before anything is written, SchedulerError otherwise.
    """
    experiment = as_preparation(experiment, cpus)
    parent = experiment_dir() / PREPARATIONS
    target = run_of(experiment, parent)
    plan = PreparePlan(experiment=experiment, run=target, number=len(submissions(target)))
    str(plan)
    preflight(plan.resources)
    try:
        make_like_parent(parent)
    except OSError as error:
        raise cannot_write(target, error) from error
    with run_folder(experiment, target, fresh=False):
        resolve_if_possible(target, must_know=True)
        if (live := _live(target)) is not None:
            return live
        # The next job gets the current settings and code; its results are keyed by content.
        target.result.unlink(missing_ok=True)
        write_atomic(target.config, to_yaml(experiment))
        known = submissions(target)
        if known:
            shutil.rmtree(target.code, ignore_errors=True)
            fill_run(target, experiment)
        make_submitit(target)
        plan = replace(plan, number=len(known))
        return Submitted(target, submit_plan(plan, os.environ))


def _live(folder: RunDir) -> Submitted | None:
    """Return the job that is pending or running; None without one."""
    last = last_submission(folder)
    if last is None:
        return None
    now = poll([last.job_id])[last.job_id]
    # A job that Slurm no longer knows has ended.
    if now.is_terminal or not now.slurm_state:
        return None
    return Submitted(folder, last, joined=now.state)
