"""The number of ranks that one machine runs of an experiment that is made for a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from slurm.config.resources import Resources
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir
from toolkit.system import idle_gpus


def local_processes(experiment: Experiment, environ: Mapping[str, str]) -> int:
    """Return the ranks of one host of the resources, at most one for each GPU if this machine has any."""
    wanted = ranks_of_a_host(experiment.resources)
    return min(wanted, usable_gpus(experiment, environ) or wanted)


def earlier_processes(run: RunDir, experiment: Experiment, environ: Mapping[str, str]) -> int | None:
    """Return the ranks of the newest attempt that trained, or of usable GPUs if less; None if not local."""
    for last in [each for each in read_attempts(run) if each.resumed is not None][-1:]:
        if last.world_size and last.job_id is None and len(last.hosts) == 1:
            usable = usable_gpus(experiment, environ) if experiment.each_rank_needs_a_gpu else 0
            return min(last.world_size, usable or last.world_size)
    return None


def ranks_of_a_host(resources: Resources) -> int:
    """Return the largest number of ranks of a host of these resources."""
    if resources.hosts:
        return max(1, *resources.hosts.values())
    return max((max(1, group.gpus) for group in resources.groups), default=resources.tasks_per_node)


def usable_gpus(experiment: Experiment, environ: Mapping[str, str]) -> int:
    """Return the number of ranks with one GPU each that fit this machine; 0 if GPUs are no limit."""
    if experiment.train.device == "cpu" or environ.get(idle_gpus.SHARING_VARIABLE) == "1":
        return 0
    return idle_gpus.count_visible(environ)


def refuse_more_than_gpus(procs: int, experiment: Experiment, environ: Mapping[str, str]) -> None:
    """Raise UserError if --procs is larger than the number of GPUs and each process needs one."""
    usable = usable_gpus(experiment, environ)
    if experiment.each_rank_needs_a_gpu and 0 < usable < procs:
        raise UserError(
            f"--procs is {procs}, but GPUs that can be used here: {usable}, and each process needs one. "
            f"Give at most {usable}, or train.device=cpu"
        )


def told_fewer(procs: int, resources: Resources) -> str:
    """Return why fewer processes are started than the resources request; empty if that is not the case."""
    wanted = ranks_of_a_host(resources)
    return f"one for each GPU here; the resources request {wanted}" if procs < wanted else ""
