"""Separation of jobs on hosts: processes, processors, memory, GPUs; and what hosts measure."""

from __future__ import annotations

from collections.abc import Iterator

from slurm.doctor.cluster import Cluster
from slurm.doctor.findings import NOTE, OK, Finding


def hosts(cluster: Cluster) -> Iterator[Finding]:
    """Findings about what happens on a job's hosts. Pure."""
    yield _processes(cluster)
    yield _processors(cluster)
    yield _memory(cluster)
    if "gpu" in cluster.value("GresTypes").split(","):
        yield _devices(cluster)
    if cluster.setting("JobAcctGatherType") in ("", "none"):
        yield Finding(
            NOTE,
            "Slurm does not measure what jobs use (JobAcctGatherType)",
            "sacct and seff know no peak of memory",
        )
    limits = cluster.value("PropagateResourceLimits")
    if limits and limits != "NONE":
        yield Finding(
            OK,
            f"limits of your shell travel into jobs (PropagateResourceLimits={limits})",
            "`ulimit` here decides",
        )


def _processes(cluster: Cluster) -> Finding:
    kind = cluster.setting("ProctrackType")
    if kind == "cgroup":
        return Finding(OK, "all processes of a job end with it (proctrack/cgroup)")
    return Finding(
        NOTE,
        f"processes that leave their parents may outlive a job (proctrack/{kind})",
        "what is left of an earlier start finds the run's fence and writes nothing",
    )


def _processors(cluster: Cluster) -> Finding:
    plugins = {name.rpartition("/")[2] for name in cluster.value("TaskPlugin").split(",")}
    if plugins & {"cgroup", "affinity"}:
        return Finding(OK, f"tasks keep to their processors (TaskPlugin {', '.join(sorted(plugins))})")
    return Finding(
        NOTE,
        "tasks may use every processor of their host (TaskPlugin none)",
        "jobs that share a host slow each other down: resources.exclusive=true where that matters",
        "resources.exclusive",
    )


def _memory(cluster: Cluster) -> Finding:
    limits = cluster.value("ConstrainRAMSpace").lower()
    if limits == "yes" or cluster.parameter("JobAcctGatherParams", "OverMemoryKill") is not None:
        return Finding(OK, "a job that takes more memory than it asked for is killed", "", "resources.mem")
    if limits == "no":
        return Finding(NOTE, "no job is kept to the memory it asked for", "a host may run out of it")
    return Finding(NOTE, "whether jobs are kept to their memory is not told (cgroup.conf)")


def _devices(cluster: Cluster) -> Finding:
    constrained = cluster.value("ConstrainDevices").lower()
    if constrained == "yes":
        return Finding(
            OK,
            "a job sees no GPUs but its own (ConstrainDevices)",
            "CUDA_VISIBLE_DEVICES counts from 0 in each job",
        )
    told = (
        "other jobs' GPUs can be reached"
        if constrained == "no"
        else "whether other GPUs can be reached is not told"
    )
    return Finding(
        NOTE,
        f"{told} (ConstrainDevices)",
        "CUDA_VISIBLE_DEVICES names a job's own, by their numbers on the host: leave it as it is set",
    )
