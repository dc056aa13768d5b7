"""Find out whether enough hosts of a partition have what a job requests of each host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from slurm.client.hostlist import expand
from slurm.client.parse import HostGroup, Partition
from slurm.client.quantities import format_mb, gres_of_host
from slurm.submission.batch.job_options import Component
from toolkit.errors import UserError
from toolkit.system.output.few import few


def unseen_hosts(partition: Partition, groups: Iterable[HostGroup]) -> int:
    """Return how many hosts sinfo does not show, such as cloud hosts; their properties are unknown."""
    seen = sum(len(expand(group.hosts)) for group in groups if group.partition == partition.name)
    return max(0, partition.total_nodes - seen)


@dataclass(frozen=True, slots=True)
class _Need:
    """A requirement for each host."""

    label: str
    has: Callable[[HostGroup], bool]
    offer: Callable[[HostGroup], str]


def host_reasons(
    part: Component, partition: Partition, groups: Iterable[HostGroup], *, tracks_memory: bool
) -> Iterator[str]:
    """Yield why too few hosts of a partition fit: single unmet requirements, else their combination.

    groups          groups of equal hosts, of any partition
    tracks_memory   whether Slurm allocates memory to jobs
    """
    groups = [group for group in groups if group.partition == partition.name]
    try:
        excluded = set(part.hosts("exclude"))
        wanted = part.hosts("nodelist")
        needs = list(_needs(part, partition, tracks_memory))
    except UserError as error:
        yield str(error)
        return
    usable = {host: group for group in groups for host in expand(group.hosts) if host not in excluded}
    if not groups or unseen_hosts(partition, groups):
        return
    if outside := [host for host in wanted if host not in usable]:
        yield f"nodelist: {listed(outside)} not in partition {partition.name}, or excluded"
    nodes = part.least_nodes
    if excluded and nodes > len(usable):
        yield f"{nodes} nodes, but partition {partition.name} has {len(usable)} that are not excluded"
    yield from _shortages(needs, nodes, partition, Counter(usable.values()))


def _shortages(
    needs: list[_Need], nodes: int, partition: Partition, kinds: Mapping[HostGroup, int]
) -> Iterator[str]:
    """Yield unmet requirements. kinds: number of hosts of each kind."""
    total = sum(kinds.values())
    enough = min(nodes, total)  # too few hosts altogether is another reason
    fitting = {need.label: sum(n for kind, n in kinds.items() if need.has(kind)) for need in needs}
    lacking = [need for need in needs if fitting[need.label] < enough]
    for need in lacking:
        offers = sorted(f"{kind.hosts}: {need.offer(kind)}" for kind in kinds)
        more = f"; and {len(offers) - 6} more kinds of host" if len(offers) > 6 else ""
        yield (
            f"{need.label}: {fitting[need.label]} of {total} hosts of partition {partition.name} have it, "
            f"{nodes} needed ({'; '.join(offers[:6])}{more})"
        )
    together = sum(n for kind, n in kinds.items() if all(need.has(kind) for need in needs))
    if not lacking and together < enough:
        yield (
            f"{', '.join(need.label for need in needs)}: {together} of {total} hosts of partition "
            f"{partition.name} have all of it, {nodes} needed"
        )


def _needs(part: Component, partition: Partition, tracks_memory: bool) -> Iterator[_Need]:
    for (name, kind), count in part.gres.items():
        label = f"gres {':'.join(filter(None, (name, kind)))}:{count}"
        yield _Need(label, _has_gres(name, kind, count), lambda group: group.gres or "none")
    if not part.options.get("overcommit"):
        limit = partition.max_cpus_per_node
        yield _Need(
            f"{part.cpus} CPUs a host ({part.tasks_per_node} tasks)",
            lambda group: part.cpus <= (group.cpus if limit is None else min(limit, group.cpus)),
            lambda group: f"{group.cpus if limit is None else min(limit, group.cpus)} CPUs",
        )
    if memory_mb := part.memory_mb(is_tracked=tracks_memory):
        yield _Need(
            f"{format_mb(memory_mb)} of memory a host",
            lambda group: memory_mb <= group.memory_mb,
            lambda group: format_mb(group.memory_mb),
        )
    feature = part.text("constraint")
    if re.fullmatch(r"[\w.-]+", feature):
        yield _Need(
            f"constraint {feature}",
            lambda group: feature in group.features,
            lambda group: listed(group.features) if group.features else "none",
        )


def _has_gres(name: str, kind: str, count: int) -> Callable[[HostGroup], bool]:
    return lambda group: gres_of_host(group.gres).get((name, kind), 0) >= count


def listed(names: Iterable[str]) -> str:
    """Return sorted names, at most twenty of them."""
    return few(sorted(names), 20)
