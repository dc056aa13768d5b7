"""The section `resources`: the request to Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from slurm.client.quantities import gres_of_request
from toolkit.config.fields import option
from toolkit.config.schema import RunPolicy

#: Default of cpus_per_task with a GPU: such a rank has several busy threads on the CPU.
CPUS_BESIDE_A_GPU = 4

#: A range of hosts.
NODES_PATTERN = r"[1-9][0-9]*-[1-9][0-9]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal hosts of a heterogeneous job."""

    nodes: int = option(minimum=1)
    """Hosts of this kind."""
    gpus: int = option(minimum=0)
    """GPUs of each of these hosts, with one process each."""
    partition: str | None = option(None)
    """Instead of the key in `resources`."""
    constraint: str | None = option(None)
    """Instead of the key in `resources`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources(RunPolicy):
    """Where to run, and how often to restart. No change here changes the result."""

    nodes: int | str = option(1, minimum=1, pattern=NODES_PATTERN, known_as="num_nodes")
    """Number of hosts, or a range such as 1-4."""
    tasks_per_node: int = option(1, minimum=1, known_as="ntasks_per_node nproc_per_node devices")
    """Processes of each host, one rank each."""
    world_size: int | None = option(None, minimum=1, known_as="ntasks")
    """Number of processes in all; sets nodes from tasks_per_node, or tasks_per_node from nodes. Alone: on one
    host."""
    groups: tuple[Group, ...] = option(())
    """Hosts with different numbers of GPUs, instead of nodes and tasks_per_node."""
    hosts: dict[str, int] = option(factory=dict, minimum=0, json_file=True)
    """Number of GPUs by name of host, or a JSON file with that; instead of nodes, tasks_per_node and
    groups."""
    gres: str | None = option(None, known_as="gpus")
    """Generic resources of each host, such as gpu:2 or gpu:a100:4."""
    gpus_per_node: str | None = option(None)
    """sbatch's option of this name."""
    gpus_per_task: str | None = option(None)
    """sbatch's option of this name."""
    cpus_per_task: int | None = option(None, minimum=1, known_as="cpus")
    """CPUs of each process. null: 4 if GPUs are requested, else 1."""
    mem: str | None = option(None, amount=True, known_as="memory mem_gb")
    """Memory of each host, such as 16G; a number alone is megabytes, 0 all memory."""
    mem_per_cpu: str | None = option(None, amount=True)
    """sbatch's option of this name, instead of mem."""
    mem_per_gpu: str | None = option(None, amount=True)
    """sbatch's option of this name, instead of mem."""
    time: str | None = option(None, amount=True, known_as="time_limit walltime timeout_min")
    """Time limit: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or UNLIMITED."""
    partition: str | None = option(None)
    """sbatch's option of this name."""
    account: str | None = option(None)
    """sbatch's option of this name."""
    qos: str | None = option(None)
    """sbatch's option of this name."""
    constraint: str | None = option(None)
    """sbatch's option of this name."""
    nodelist: str | None = option(None)
    """sbatch's option of this name."""
    exclude: str | None = option(None)
    """sbatch's option of this name."""
    reservation: str | None = option(None)
    """sbatch's option of this name."""
    dependency: str | None = option(None)
    """sbatch's option of this name. If it can never be met, the job leaves the queue, unless
    `sbatch.kill-on-invalid-dep: no` is set."""
    mail_user: str | None = option(None)
    """sbatch's option of this name."""
    mail_type: str | None = option(None)
    """sbatch's option of this name."""
    comment: str | None = option(None)
    """sbatch's option of this name."""
    licenses: str | None = option(None)
    """sbatch's option of this name."""
    exclusive: bool = option(
        False, instead=dict.fromkeys(("user", "mcs", "topo"), "set resources.sbatch.exclusive to it")
    )
    """sbatch's option of this name; `sbatch.exclusive` takes user, mcs and topo."""
    max_parallel: int | None = option(None, minimum=1, known_as="array_parallelism")
    """Runs of a sweep that train at the same time; null: all."""
    signal_s: int = option(120, minimum=1, maximum=65535, known_as="signal")
    """Seconds before the time limit at which a command of your own is warned; a task leaves when it must."""
    requeue: str = option("auto", choices=("auto", "same_job", "chain"))
    """How an interrupted run continues. same_job: under its job id, after two minutes; chain: in a new job,
    after a second, but after a preemption as same_job; auto: chain before the time limit, else same_job."""
    setup: tuple[str, ...] = option(())
    """Shell lines that prepare the environment, such as `module load cuda`."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of the ranks of a job, taken literally; not of `stk run` and `--cluster local`.
    Write a secret, or another variable, as ${oc.env:NAME}."""
    sbatch: dict[str, Any] = field(default_factory=dict)
    """Any other option of sbatch, by its full long name; true for a flag."""

    def cpus_of_rank(self, *, on_gpu: bool | None) -> int:
        has_gpus = asks_for_gpus(asdict(self)) if on_gpu is None else on_gpu
        return self.cpus_per_task or (CPUS_BESIDE_A_GPU if has_gpus else 1)

    @property
    def waits_for_jobs(self) -> bool:
        return bool(self.dependency)


def asks_for_gpus(resources: Mapping[str, Any]) -> bool:
    """Whether a section `resources` requests any GPU, in any way."""
    gres = gres_of_request(str(resources.get("gres") or ""))
    return bool(
        any(name == "gpu" for name, _ in gres)
        or resources.get("gpus_per_node")
        or resources.get("gpus_per_task")
        or any(group.get("gpus") for group in resources.get("groups") or ())
        or any((resources.get("hosts") or {}).values())
    )
