"""PreparePlan: the preparation of data as a job of one task, and its batch script. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any

from slurm.hostlist import names_several
from slurm.plan import JobPlan
from slurm.resources import Component, signal_lead_s
from slurm.why import WARNING_SIGNAL
from toolkit.config.kinds import SpellingTexts
from toolkit.config.schema import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePlan(JobPlan):
    """What `stk prepare --cluster slurm` hands to sbatch; str(plan) is the batch script.

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
    count = cpus or experiment.resources.cpus_per_task or 1
    data, resources = experiment.data, experiment.resources
    if isinstance(data, SpellingTexts) and data.workers is None:
        data = replace(data, workers=count)
    own: dict[str, Any] = {"nodes": 1, "tasks_per_node": 1, "world_size": None, "groups": (), "hosts": {}}
    if not getattr(experiment.model, "fixes_entities", False):
        # Nothing but the vectors of entities is computed on a GPU.
        own |= {"gres": _without_gpus(resources.gres), "gpus_per_node": None, "gpus_per_task": None}
        own |= {"mem_per_gpu": None}
    if names_several(resources.nodelist):
        # A job gets all hosts of its list, and this one wants one.
        own |= {"nodelist": None}
    sbatch = {name: value for name, value in resources.sbatch.items() if name not in ("output", "error")}
    changed = replace(resources, cpus_per_task=count, max_parallel=None, sbatch=sbatch, **own)
    return replace(experiment, data=data, resources=changed)


def _without_gpus(gres: str | None) -> str | None:
    """Generic resources but for GPUs: gpu:a100:2,tmpdisk:10 -> tmpdisk:10."""
    kept = [each for each in (gres or "").split(",") if each and each.split(":")[0] != "gpu"]
    return ",".join(kept) or None
