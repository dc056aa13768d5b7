"""The partitions as a table: their limits, their free hosts and GPUs, and which preempts which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm.client.parse import HostUse, Partition
from slurm.client.quantities import gres_of_host
from slurm.doctor.cluster import Cluster

#: Suffixes of a state in sinfo: not answering, powering, in maintenance, …
_MARKS = "*~#!%$@^-+"
#: Hosts in these states can start a job now, if they have enough free resources.
_FREE = ("idle", "mixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """One partition now.

    idle, mixed, hosts   hosts without a job, partly free hosts, and all hosts
    gpus_free, gpus      by type; the type is "gpu" if it has none
    preempted_by         partitions with jobs that preempt its jobs; empty without preemption by partition
    max_time_min, default_time_min   None: no limit; None: max_time_min
    """

    name: str
    is_default: bool
    state: str
    tier: int
    max_time_min: int | None
    default_time_min: int | None
    idle: int
    mixed: int
    hosts: int
    gpus_free: Mapping[str, int]
    gpus: Mapping[str, int]
    preempted_by: tuple[str, ...]


def rows(cluster: Cluster) -> list[PartitionRow]:
    """Return a row for each partition, the default partition first."""
    above = preempting(cluster)
    found = [
        _row(each, [use for use in cluster.uses if use.partition == each.name], above.get(each.name, ()))
        for each in cluster.partitions
    ]
    return sorted(found, key=lambda row: not row.is_default)


def _row(partition: Partition, uses: Iterable[HostUse], above: tuple[str, ...]) -> PartitionRow:
    hosts: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for use in uses:
        state, is_lost = use.state.rstrip(_MARKS).lower(), use.state.endswith("*")
        hosts[state] += 0 if is_lost else use.hosts
        there, taken = _gpus(use.gres), _gpus(use.gres_used)
        for kind, number in there.items():
            gpus[kind] += number * use.hosts
            left = number - taken.get(kind, 0) if state in _FREE and not is_lost else 0
            free[kind] += max(0, left) * use.hosts
    return PartitionRow(
        name=partition.name,
        is_default=partition.is_default,
        state=partition.state,
        tier=partition.priority_tier,
        max_time_min=partition.max_time_min,
        default_time_min=partition.default_time_min,
        idle=hosts["idle"],
        mixed=hosts["mixed"],
        hosts=partition.total_nodes,
        gpus_free=dict(free),
        gpus=dict(gpus),
        preempted_by=above,
    )


def _gpus(gres: str) -> dict[str, int]:
    """Return GPUs by type; if some have no type, all of them as "gpu"."""
    offered = {kind: number for (name, kind), number in gres_of_host(gres).items() if name == "gpu"}
    total = offered.pop("", 0)
    typed = {kind: number for kind, number in offered.items() if kind != "(null)"}
    if sum(typed.values()) == total:
        return typed
    return {"gpu": total} if total else {}


def preempting(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Return for each partition the partitions that preempt it: of a higher tier, with shared hosts.

    Empty if preemption is by QOS, or off.
    """
    if cluster.setting("PreemptType") != "partition_prio":
        return {}
    hosts = {each.name: each.host_names for each in cluster.partitions}
    return {
        each.name: tuple(
            other.name
            for other in cluster.partitions
            if other.priority_tier > each.priority_tier and hosts[other.name] & hosts[each.name]
        )
        for each in cluster.partitions
        if each.can_be_preempted
    }
