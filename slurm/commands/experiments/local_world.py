"""The processes of `stk run` on this machine: their number, their GPUs, the other machines."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping

from slurm.client import hostlist
from slurm.client.topology import scrub
from slurm.config.rank_count import local_processes, ranks_of_a_host, refuse_more_than_gpus
from slurm.config.resources import Resources
from toolkit.config.fields import keys_of
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.launch.machines.layout import DEFAULT_PORT, Machines, machines_of_hosts, own_names
from toolkit.system import idle_gpus

#: Options of `stk run` that describe several machines.
_BY_HAND = ("node_rank", "nnodes", "master_addr", "master_port", "gpus_per_node")
#: Variables that show a grant of GPUs by Slurm, in a job or a step.
_GRANTED = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE")


def machines_here(
    arguments: Namespace, experiment: Experiment, environ: Mapping[str, str], earlier: int | None = None
) -> Machines:
    """Return this machine and the other machines of the arguments or resources.hosts.

    earlier   processes of the newest attempt of a run to continue, if it was local

    Raises UserError if they contradict each other, or the given size of the world.
    """
    for name in ("procs", "gpus"):
        if (given := getattr(arguments, name)) is not None:
            check_procs(_option(name), given, experiment)
    machines = _machines(arguments, experiment, environ, earlier)
    if arguments.procs is not None:
        refuse_more_than_gpus(arguments.procs, experiment, environ)
    size, most = machines.size, experiment.train.batch_size
    # resources.world_size is not checked on a single machine: it may be meant for a cluster.
    resources = experiment.resources if len(machines.counts) > 1 else None
    check_world_size(size, arguments, environ, resources)
    if most is not None and size > most:
        raise UserError(f"the machines have {size} processes in all: it must be {_allowed(experiment)}")
    return machines


def _machines(
    arguments: Namespace, experiment: Experiment, environ: Mapping[str, str], earlier: int | None
) -> Machines:
    resources = experiment.resources
    given = [_option(name) for name in _BY_HAND if getattr(arguments, name) is not None]
    alone = [name for name in ("procs", "gpus") if getattr(arguments, name) is not None]
    if len(alone) == 2 or (alone and given):
        together = [*map(_option, alone), *given]
        raise UserError(
            f"{' and '.join(together[:2])} each set the number of processes: give only one of them"
        )
    if alone:
        return Machines.alone(getattr(arguments, alone[0]))
    if resources.hosts and not arguments.nnodes and not arguments.gpus_per_node:
        return machines_of_hosts(
            resources.hosts,
            own_names(),
            own_count=max(1, idle_gpus.count_visible(environ)),
            node=arguments.node_rank,
            master_addr=arguments.master_addr,
            master_port=_port(arguments),
        )
    if not given:
        return Machines.alone(earlier or local_processes(experiment, environ))
    return _by_hand(arguments, resources)


def refuse_by_hand(arguments: Namespace) -> None:
    """Raise UserError for options that describe the processes if another launcher started this one."""
    for name in ("procs", "gpus", *_BY_HAND):
        if getattr(arguments, name) is not None:
            raise UserError(
                f"{_option(name)} works only if `stk run` starts the processes, but this process is a rank "
                "of another launcher (RANK and WORLD_SIZE, or an srun step)"
            )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def check_procs(option: str, procs: int, experiment: Experiment) -> None:
    """Raise UserError for fewer processes than one, or more than a step has samples."""
    most = experiment.train.batch_size
    if procs < 1 or (most is not None and procs > most):
        raise UserError(f"{option} is {procs}: it must be {_allowed(experiment)}")


def _allowed(experiment: Experiment) -> str:
    if (most := experiment.train.batch_size) is None:
        return "at least 1"
    is_key = any(each.name == "train" for each in keys_of(type(experiment)))
    return f"from 1 to train.batch_size, {most}" if is_key else f"from 1 to {most}"


def _by_hand(arguments: Namespace, resources: Resources) -> Machines:
    counts = _counts(arguments, resources)
    if len(counts) > 1 and arguments.node_rank is None:
        raise UserError(
            f"there are {len(counts)} machines, and the number of this one is missing: give "
            f"--node-rank 0 on the first, 1 on the next, up to {len(counts) - 1}"
        )
    return Machines(
        counts=tuple(counts),
        node=arguments.node_rank or 0,
        master_addr=arguments.master_addr,
        master_port=_port(arguments),
    )


def _port(arguments: Namespace) -> int:
    return DEFAULT_PORT if arguments.master_port is None else int(arguments.master_port)


def _counts(arguments: Namespace, resources: Resources) -> list[int]:
    """Return the number of processes of each machine; a single number applies to all."""
    if arguments.gpus_per_node is None:
        return [ranks_of_a_host(resources)] * (1 if arguments.nnodes is None else arguments.nnodes)
    try:
        counts = [int(part) for part in arguments.gpus_per_node.split(",")]
    except ValueError:
        raise UserError(
            f"--gpus-per-node is {arguments.gpus_per_node!r}, expected one whole number for each machine, "
            "such as 3,1"
        ) from None
    nnodes = len(counts) if arguments.nnodes is None else arguments.nnodes
    if len(counts) not in (1, nnodes):
        raise UserError(
            f"--nnodes is {nnodes}, but --gpus-per-node has the numbers of {len(counts)} machines"
        )
    # A machine without GPUs (0) runs one process on its CPU.
    return [1 if count == 0 else count for count in counts] * (nnodes if len(counts) == 1 else 1)


def check_world_size(
    size: int, arguments: Namespace, environ: Mapping[str, str], resources: Resources | None = None
) -> None:
    """Raise UserError if the given world size differs from the real one.

    WORLD_SIZE from a launcher such as torchrun, which also sets RANK, is not checked.
    """
    typed = None if arguments.world_size is None else str(arguments.world_size)
    source = "--world-size"
    if typed is None and resources is not None and resources.world_size is not None:
        typed, source = str(resources.world_size), "resources.world_size"
    if typed is None and "RANK" not in environ:
        typed, source = environ.get("WORLD_SIZE"), "WORLD_SIZE in the environment"
    if typed is not None and typed != str(size):
        raise UserError(
            f"{source} is {typed}, but {size} processes make up this world: leave it out, every rank gets it "
            "automatically"
        )


def rank_environ(machines: Machines, arguments: Namespace, experiment: Experiment) -> dict[str, str]:
    """Return the environment of this machine's ranks: without a job's variables, with the least busy GPUs.

    Raises UserError if --gpus is more than there are. Without --gpus, the least busy GPUs are also chosen if
    the machines were given and have GPUs. GPUs granted by Slurm are not changed.
    """
    environ = scrub()
    has_gpus_option = arguments.gpus is not None
    is_given = has_gpus_option or arguments.gpus_per_node is not None or len(machines.counts) > 1
    if not is_given or experiment.train.device == "cpu":
        return environ
    if (granted := granted_gpus(os.environ)) is not None:
        if has_gpus_option and machines.count > granted:
            raise UserError(
                f"--gpus is {machines.count}, but Slurm has granted {granted} GPUs on this machine"
            )
        return environ
    try:
        return idle_gpus.choose(machines.count, environ)
    except idle_gpus.NoGpus:
        if has_gpus_option or experiment.train.device == "cuda":
            raise
        return environ


def granted_gpus(environ: Mapping[str, str]) -> int | None:
    """Return the number of GPUs that Slurm granted to the surrounding job here; None without a grant."""
    if "SLURM_JOB_ID" not in environ or not any(environ.get(name) for name in _GRANTED):
        return None
    return len([part for part in environ.get(idle_gpus.VARIABLE, "").split(",") if part])


def told_idle(environ: Mapping[str, str]) -> str:
    """Return a message if a job has several hosts and a run uses only this one; empty if it has one."""
    try:
        hosts = hostlist.expand(hostlist.of_job(environ))
    except UserError:
        return ""
    if "SLURM_JOB_ID" not in environ or len(hosts) < 2:
        return ""
    return (
        f"job {environ['SLURM_JOB_ID']} has {len(hosts)} hosts ({', '.join(hosts)}), and this run takes one "
        "of them: the others are idle. `srun stk run …`, with the same arguments, trains on all of them"
    )
