"""The section `resources`: what is asked of Slurm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolkit.config.fields import option
from toolkit.config.schema import RunPolicy

#: A rank on a GPU has several threads at work on the CPU.
CPUS_BESIDE_A_GPU = 4

#: A range of hosts.
NODES_PATTERN = r"[1-9][0-9]*-[1-9][0-9]*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Equal hosts within an uneven job."""

    nodes: int = option(minimum=1)
    """Hosts of this kind."""
    gpus: int = option(minimum=0)
    """GPUs on each of these hosts, and tasks: one per GPU."""
    partition: str | None = option(None)
    """In place of `resources.partition`."""
    constraint: str | None = option(None)
    """In place of `resources.constraint`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources(RunPolicy):
    """Where to run, and how it goes on. Never what: changing anything here leaves the result as it is."""

    nodes: int | str = option(1, minimum=1, pattern=NODES_PATTERN)
    """Hosts. With a range such as 1-4 Slurm starts on as many as are free."""
    tasks_per_node: int = option(1, minimum=1)
    """Processes on each host, one rank each."""
    world_size: int | None = option(None, minimum=1)
    """Processes in all. Given with tasks_per_node it sets nodes (40 with 8 each: 5), with nodes it sets
    tasks_per_node; alone it is the number of processes on one host."""
    groups: tuple[Group, ...] = option(())
    """Groups of hosts with different numbers of GPUs, as one heterogeneous job; instead of nodes and
    tasks_per_node."""
    hosts: dict[str, int] = option(factory=dict, minimum=0, json_file=True)
    """Number of GPUs by name of host, in order, or a JSON file with that: one process per GPU, or one on a
    host without GPUs. Instead of groups, nodes and tasks_per_node."""
    gres: str | None = option(None)
    """Generic resources of each host, such as gpu:2 or gpu:a100:4."""
    gpus_per_node: str | None = option(None)
    """sbatch's `--gpus-per-node`."""
    gpus_per_task: str | None = option(None)
    """sbatch's `--gpus-per-task`."""
    cpus_per_task: int | None = option(None, minimum=1)
    """null: 4 if GPUs are requested, for Python, autograd, NCCL and the writer of checkpoints; else 1."""
    mem: str | None = option(None)
    """Memory of each host, such as 16G; a number alone is megabytes, 0 all memory."""
    mem_per_cpu: str | None = option(None)
    """sbatch's `--mem-per-cpu`, instead of mem."""
    mem_per_gpu: str | None = option(None)
    """sbatch's `--mem-per-gpu`, instead of mem."""
    time: str | None = option(None)
    """Time limit: minutes, Slurm's forms M:S, H:M:S, D-H, D-H:M, D-H:M:S, or UNLIMITED. `stk plan` says what
    it means."""
    partition: str | None = option(None)
    """sbatch's `--partition`."""
    account: str | None = option(None)
    """sbatch's `--account`."""
    qos: str | None = option(None)
    """sbatch's `--qos`."""
    constraint: str | None = option(None)
    """sbatch's `--constraint`."""
    nodelist: str | None = option(None)
    """sbatch's `--nodelist`."""
    exclude: str | None = option(None)
    """sbatch's `--exclude`."""
    reservation: str | None = option(None)
    """sbatch's `--reservation`."""
    dependency: str | None = option(None)
    """sbatch's `--dependency`. A job that can never start because of it leaves the queue: `stk status` says
    why. `sbatch.kill-on-invalid-dep: no` lets it stay."""
    mail_user: str | None = option(None)
    """sbatch's `--mail-user`."""
    mail_type: str | None = option(None)
    """sbatch's `--mail-type`."""
    comment: str | None = option(None)
    """sbatch's `--comment`."""
    licenses: str | None = option(None)
    """sbatch's `--licenses`."""
    exclusive: bool = option(False)
    """sbatch's `--exclusive`."""
    max_parallel: int | None = option(None, minimum=1)
    """Runs of a sweep that train at the same time; null: all."""
    signal_s: int = option(120, minimum=1, maximum=65535)
    """Seconds before the time limit at which the ranks are warned."""
    requeue: str = option("auto", choices=("auto", "same_job", "chain"))
    """How an interrupted run continues. same_job: it is requeued under its job id; chain: a new job, which
    starts after a second instead of two minutes; auto: chain before the time limit, same_job after a
    preemption. After a crash the ranks restart inside their job, which keeps its hosts."""
    setup: tuple[str, ...] = option(())
    """Shell lines that prepare the environment, such as `module load cuda`."""
    environment: dict[str, str] = field(default_factory=dict)
    """Environment variables of the ranks. Write a secret as ${oc.env:NAME}: the job takes it from the shell
    that submits it."""
    sbatch: dict[str, Any] = field(default_factory=dict)
    """Any other option of sbatch, or of its plugin pyxis, by its full long name; true for a flag."""

    def cpus_of_rank(self, *, on_gpu: bool) -> int:
        return self.cpus_per_task or (CPUS_BESIDE_A_GPU if on_gpu else 1)

    @property
    def waits_for_jobs(self) -> bool:
        return bool(self.dependency)
