"""Errors and warnings about the GPUs that a job asks for, found before it waits in the queue."""

from __future__ import annotations

from collections.abc import Iterator

from slurm.config.resources import Resources
from slurm.submission.checks.host_fit import Request
from slurm.submission.job_options import Component, components
from toolkit.config.schema import Experiment
from toolkit.workload import Violation


def ranks_without_gpus(experiment: Experiment) -> Iterator[Violation]:
    """Find hosts that get fewer GPUs than ranks, where ranks compute on GPUs. Jobs without GPUs have none."""
    if not experiment.each_rank_needs_a_gpu:
        return
    for part in components(experiment.resources):
        gpus = _gpus(part)
        if 0 < gpus < part.tasks_per_node:
            ranks = part.tasks_per_node
            problem = f"{ranks} ranks on each host, but {gpus} GPU{'s' if gpus > 1 else ''} there"
            hint = f"{gpus} ranks, or {ranks} GPUs: each rank needs one (train.device: cpu needs none)"
            yield Violation(key=("resources", _blamed(experiment.resources)), problem=problem, hint=hint)


def gpus_without_ranks(experiment: Experiment) -> Iterator[Violation]:
    """Find hosts that get more GPUs than ranks, where each rank computes on one: the others would be idle."""
    if not experiment.each_rank_needs_a_gpu or experiment.train.parallel == "dp":
        return
    for part in components(experiment.resources):
        gpus, ranks = _gpus(part), part.tasks_per_node
        if gpus > ranks:
            problem = (
                f"{ranks} rank{'s' if ranks > 1 else ''} on each host, but {gpus} GPUs there: "
                f"{gpus - ranks} would be idle"
            )
            hint = f"{gpus} ranks use all of them, with the same result"
            yield Violation(key=("resources", _blamed(experiment.resources)), problem=problem, hint=hint)


def hidden_gpus(experiment: Experiment) -> Iterator[Violation]:
    """Find ranks of a host that would each see their own GPUs alone (measured, 22.05)."""
    for part in components(experiment.resources):
        if part.tasks_per_node > 1 and {**part.options, **part.step_options}.get("gpus-per-task"):
            problem = "each rank sees its own GPUs alone, and NCCL may do without NVLink between them"
            yield Violation(
                key=("resources", "gpus_per_task"),
                problem=problem,
                hint="gres or gpus_per_node shows them all to every rank of a host",
            )
            return


def _gpus(part: Component) -> int:
    """GPUs of each host, of all types."""
    return sum(count for (name, _), count in Request.of(part).gres.items() if name == "gpu")


def _blamed(resources: Resources) -> str:
    """The key that says how many ranks there are."""
    return "tasks_per_node" if resources.world_size is None else "world_size"
