"""Find jobs that can never run before they are queued, and name the limits that forbid them.

`sbatch` accepts many of these requests, and they stay pending for ever (measured: time, node count, account
and state of the partition, unless EnforcePartLimits is set). Limits that are not visible here, such as those
of accounts, are left to Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from slurm.client import programs
from slurm.client.hostlist import expand
from slurm.client.parse import HostGroup, Partition, whole
from slurm.client.quantities import format_minutes, parse_minutes
from slurm.config.resources import CPUS_BESIDE_A_GPU, Resources
from slurm.submission.batch.job_options import Component, components
from slurm.submission.checks.host_fit import host_reasons, listed, unseen_hosts
from toolkit.errors import SlurmRefused, UserError
from toolkit.system.output.nearest import nearest

#: Values of AccountingStorageEnforce that enforce limits.
_ENFORCING = {"limits", "safe", "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Resources and limits of the cluster.

    max_array_size   most tasks of an array; None for unknown, 0 for no arrays
    max_jobs         jobs that the controller keeps, each array task counts; None for unknown
    tracks_memory    whether Slurm allocates memory to jobs
    limits_submits   whether limits of accounts and QOS are enforced
    site_chooses     whether a plugin of the site may choose the partition of a job that names none
    has_subaccounts  whether AllowAccounts also allows accounts below those that it names
    qos_flags        flags of the requested QOS, which may lift a partition's limits; None for unknown
    """

    partitions: tuple[Partition, ...]
    hosts: tuple[HostGroup, ...]
    max_array_size: int | None = None
    max_jobs: int | None = None
    tracks_memory: bool = False
    limits_submits: bool = False
    site_chooses: bool = False
    has_subaccounts: bool = False
    qos_flags: frozenset[str] | None = frozenset()


def preflight(resources: Resources) -> Facts:
    """Raise SlurmRefused with all reasons why these resources can never be allocated; return the facts.

    Makes three short calls of Slurm's programs, four with a QOS.
    """
    facts = read_facts(resources)
    if reasons := check_fits(resources, facts):
        lines = "\n".join(f"  - {reason}" for reason in reasons)
        raise SlurmRefused(f"This cluster cannot run it (nothing was submitted):\n{lines}")
    return facts


def read_facts(resources: Resources) -> Facts:
    """Query the controller for the facts that `check_fits` needs."""
    qos = components(resources)[0].options.get("qos")
    config = programs.config()
    lower = re.search(r"\bmax_array_tasks=(\d+)", config.get("SchedulerParameters", ""), re.IGNORECASE)
    array_sizes = (whole(config.get("MaxArraySize", "")), whole(lower[1]) if lower else None)
    return Facts(
        partitions=tuple(programs.partitions()),
        hosts=tuple(programs.hosts()),
        max_array_size=min((size for size in array_sizes if size is not None), default=None),
        max_jobs=whole(config.get("MaxJobCount", "")),
        tracks_memory="MEMORY" in config.get("SelectTypeParameters", "").upper(),
        limits_submits=bool(_ENFORCING & set(config.get("AccountingStorageEnforce", "").lower().split(","))),
        site_chooses=config.get("JobSubmitPlugins", "(null)") not in ("", "(null)"),
        # As the manuals of newer versions say; 22.05 allows only the named ones.
        has_subaccounts=config.get("SLURM_VERSION", "") >= "23",
        qos_flags=programs.qos_flags(str(qos)) if qos else frozenset(),
    )


def check_fits(resources: Resources, facts: Facts) -> list[str]:
    """Return all reasons why these resources can never be allocated; empty if none is known."""
    reasons = _reasons(resources, facts)
    if not reasons or resources.cpus_per_task is not None:
        return reasons
    # The default number of CPUs for a rank on a GPU may be the only obstacle.
    for cpus in range(CPUS_BESIDE_A_GPU - 1, 0, -1):
        if not _reasons(replace(resources, cpus_per_task=cpus), facts):
            default = f"a rank on a GPU gets {CPUS_BESIDE_A_GPU} CPUs by default"
            return [*reasons, f"{default}: resources.cpus_per_task={cpus} fits"]
    return reasons


def _reasons(resources: Resources, facts: Facts) -> list[str]:
    reasons: list[str] = []
    parts = components(resources)
    names = [*resources.hosts] or [f"groups[{number}]" for number in range(len(parts))]
    for number, part in enumerate(parts):
        prefix = f"{names[number]}: " if len(parts) > 1 else ""
        reasons += [prefix + reason for reason in _component(part, facts)]
    return list(dict.fromkeys(reasons))


def _component(part: Component, facts: Facts) -> list[str]:
    """Return reasons against one component; empty if one of its partitions can run it."""
    known = {partition.name: partition for partition in facts.partitions}
    if not known:
        return []
    chosen = part.partitions(facts.partitions)
    if facts.site_chooses and not part.text("partition"):
        chosen = list(known)
    elif not chosen:
        return [f"no partition was given and the cluster has no default; there are {listed(known)}"]
    missing = [name for name in chosen if name not in known]
    there_are = f"does not exist; there are {listed(known)}"
    reasons = [f"partition {name!r} {there_are}{_hint(name, known)}" for name in missing]
    reasons += _host_names(part, facts)
    if reasons:
        return reasons
    attempts = [list(_partition(part, known[name], facts)) for name in chosen]
    return [] if not all(attempts) else [reason for attempt in attempts for reason in attempt]


def _partition(part: Component, partition: Partition, facts: Facts) -> Iterator[str]:
    # In a partition that is DOWN, jobs wait until it is UP again.
    if partition.state not in ("UP", "DOWN"):
        yield f"partition {partition.name} is {partition.state}: it accepts no jobs"
    yield from _time(part, partition, facts.qos_flags)
    yield from _node_count(part, partition, facts.qos_flags)
    yield from _permissions(part, partition, facts.has_subaccounts)
    yield from host_reasons(part, partition, facts.hosts, tracks_memory=facts.tracks_memory)


def _time(part: Component, partition: Partition, qos_flags: frozenset[str] | None) -> Iterator[str]:
    if not (text := part.text("time")):
        return
    try:
        minutes = parse_minutes(text)
    except UserError as error:
        yield f"time: {error}"
        return
    limit = partition.max_time_min
    if limit is None or "time-min" in part.options or _is_lifted("PartitionTimeLimit", qos_flags):
        return
    if minutes is None or minutes > limit:
        asked, allowed = format_minutes(minutes), format_minutes(limit)
        yield f"time {asked} is above MaxTime {allowed} of partition {partition.name}"


def _node_count(part: Component, partition: Partition, qos_flags: frozenset[str] | None) -> Iterator[str]:
    nodes, name, most = part.least_nodes, partition.name, partition.max_nodes
    if partition.total_nodes and nodes > partition.total_nodes:
        yield f"{nodes} nodes, but partition {name} has {partition.total_nodes}"
    if most is not None and nodes > most and not _is_lifted("PartitionMaxNodes", qos_flags):
        yield f"{nodes} nodes are above MaxNodes {most} of partition {name}"
    if nodes < partition.min_nodes and not _is_lifted("PartitionMinNodes", qos_flags):
        yield f"{nodes} nodes are below MinNodes {partition.min_nodes} of partition {name}"


def _is_lifted(flag: str, qos_flags: frozenset[str] | None) -> bool:
    """Whether the QOS lifts a limit of the partition; True if its flags are unknown."""
    return qos_flags is None or flag in qos_flags


def _permissions(part: Component, partition: Partition, has_subaccounts: bool) -> Iterator[str]:
    # The tree of accounts is not known here.
    accounts = None if has_subaccounts else partition.allow_accounts
    rules = (
        ("account", "AllowAccounts", accounts, partition.deny_accounts),
        ("qos", "AllowQos", partition.allow_qos, partition.deny_qos),
    )
    for option, rule, allowed, denied in rules:
        # The default account and QOS are not known here. Slurm writes both in lower case.
        if not (value := part.text(option).lower()):
            continue
        if allowed is not None and value not in {name.lower() for name in allowed}:
            yield f"{option} {value} is not among {rule} of partition {partition.name}: {listed(allowed)}"
        elif value in {name.lower() for name in denied}:
            yield f"{option} {value} is denied by partition {partition.name}"


def _host_names(part: Component, facts: Facts) -> Iterator[str]:
    """Yield a reason for each named host that does not exist."""
    if any(unseen_hosts(partition, facts.hosts) for partition in facts.partitions):
        return
    known = {host for group in facts.hosts for host in expand(group.hosts)}
    for option in ("nodelist", "exclude"):
        try:
            named = part.hosts(option)
        except UserError as error:
            yield f"{option}: {error}"
            continue
        for host in named:
            if known and host not in known:
                yield f"{option}: there is no host {host!r}{_hint(host, known)}"


def _hint(name: str, valid: Iterable[str]) -> str:
    match = nearest(name, valid)
    return f"; did you mean {match}?" if match else ""
