"""Number of ranks that one machine runs of an experiment for a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from slurm.config.resources import Resources
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.system import idle_gpus


def local_processes(experiment: Experiment, environ: Mapping[str, str]) -> int:
    """Ranks of one host of the resources, but no more than this machine has GPUs, if it has any."""
    wanted = ranks_of_a_host(experiment.resources)
    return min(wanted, usable_gpus(experiment, environ) or wanted)


def ranks_of_a_host(resources: Resources) -> int:
    """The most ranks that a host of these resources has."""
    if resources.hosts:
        return max(1, *resources.hosts.values())
    return max((max(1, group.gpus) for group in resources.groups), default=resources.tasks_per_node)


def usable_gpus(experiment: Experiment, environ: Mapping[str, str]) -> int:
    """Return the number of ranks with a GPU each that fit this machine; 0 if GPUs set no limit."""
    if experiment.train.device == "cpu" or environ.get(idle_gpus.SHARING_VARIABLE) == "1":
        return 0
    return idle_gpus.count_visible(environ)


def refuse_more_than_gpus(procs: int, experiment: Experiment, environ: Mapping[str, str]) -> None:
    """Raise UserError where --procs asks for more processes than this machine has GPUs."""
    usable = usable_gpus(experiment, environ)
    if experiment.each_rank_needs_a_gpu and 0 < usable < procs:
        raise UserError(
            f"--procs is {procs}, but GPUs that can be used here: {usable}, and each process needs one. "
            f"Give at most {usable}, or train.device=cpu"
        )


def told_fewer(procs: int, resources: Resources) -> str:
    """Why fewer processes are started than the resources ask for; empty where that is not so."""
    wanted = ranks_of_a_host(resources)
    return f"one for each GPU here; the resources ask for {wanted}" if procs < wanted else ""
