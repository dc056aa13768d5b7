"""PreparePlan: the preparation of data as a job of one task, and its batch script. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from slurm.client.stop_reason import WARNING_SIGNAL
from slurm.submission.batch_script import JobPlan
from slurm.submission.job_options import Component, signal_lead_s
from slurm.submission.single_task import single_task, without_gpus
from toolkit.config.schema import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePlan(JobPlan):
    """The submission of `stk prepare --cluster slurm`; str(plan) is the batch script.

    run   not that of the training: a folder like a run's, with config, code, logs and submissions
    """

    @property
    def log(self) -> str:
        """The log's place, with Slurm's pattern for the job's id: where `stk logs` looks for rank 0."""
        return "logs/%j.rank_00000.log"

    def options(self) -> dict[str, object]:
        # There is no step that could be warned: B means the batch script, which is the preparation itself.
        warning = f"B:{WARNING_SIGNAL}@{signal_lead_s(self.resources)}"
        return {**JobPlan.options(self), "output": self.log, "signal": warning}

    def _launch(self, parts: tuple[Component, ...]) -> list[str]:
        command = [self.python, "-P", "-u", "-m", "slurm.preparing.preparation", str(self.run.path)]
        return [
            "# A warning may come before Python has begun to listen.",
            f"trap '' {WARNING_SIGNAL}",
            f"exec {shlex.join(command)}",
        ]


def as_preparation(experiment: Experiment, cpus: int | None = None) -> Experiment:
    """The experiment as its preparation runs: one task on one host, as many processes as it has CPUs.

    cpus   None: those of a task, resources.cpus_per_task
    """
    resources = experiment.resources
    count = cpus or resources.cpus_per_task or 1
    # Only what a model needs may be computed on a GPU.
    gpus = {} if experiment.model.needs_preparation else without_gpus(resources)
    changed = single_task(resources, cpus_per_task=count, **gpus)
    return replace(experiment, data=experiment.data.with_workers(count), resources=changed)
