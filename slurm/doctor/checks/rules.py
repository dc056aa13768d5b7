"""Findings about the cluster's rules for all jobs: version, accounting, requeueing, limits, hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurm.doctor.cluster import Cluster
from slurm.doctor.findings import NOTE, OK, Finding

#: Slurm's own default, up to 25.05.
_CRED_EXPIRE_S = 120
_LONG_DELAY_S = 30
_TESTED = (22, 5)
_UNENFORCED = ("", "none", "0")
_WORDS = {
    "MaxWall": "time of a job",
    "MaxTRES": "of each job",
    "MaxTRESPU": "of each user",
    "MaxJobs": "jobs that run",
    "MaxJobsPU": "jobs that run, of each user",
    "MaxSubmit": "jobs that wait or run",
    "MaxSubmitPU": "jobs that wait or run, of each user",
    "GrpTRES": "of all together",
    "GrpJobs": "jobs that run, of all together",
    "GrpSubmit": "jobs that wait or run, of all together",
}


def scheduler(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about the scheduler itself. Pure."""
    name, version = cluster.value("ClusterName"), cluster.value("SLURM_VERSION")
    level = OK if cluster.version >= _TESTED else NOTE
    follows = "" if level is OK else "slurm-toolkit is measured on 22.05 and newer"
    found = f"Slurm {version or '(unknown version)'} answers, cluster {name or 'without a name'}"
    yield Finding(level, found, follows)
    if cluster.has_accounting:
        found = "there is accounting"
        yield Finding(OK, found, "how a job ended can still be asked after it has left the queue")
    else:
        kept = cluster.value("MinJobAge") or "some minutes"
        found = f"there is no accounting; ended jobs are forgotten after {kept} (MinJobAge)"
        yield Finding(NOTE, found, "later a run's own folder says how it ended")
    for what, words in cluster.unknown:
        yield Finding(NOTE, f"{what}: unknown ({words})")


def requeueing(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about requeueing. Pure."""
    if cluster.value("JobRequeue") == "0":
        found = "jobs are not requeued by default (JobRequeue=0)"
        yield Finding(OK, found, "runs request it themselves, with --requeue")
    else:
        yield Finding(OK, "jobs may be requeued (JobRequeue=1)")
    delay_s = requeue_delay_s(cluster)
    if delay_s is None:
        found = "how long a requeued job must wait is unknown"
        yield Finding(NOTE, found, "`stk watch` lets it start at once")
    elif delay_s > _LONG_DELAY_S:
        found = f"a requeued job waits {delay_s} s before it may start"
        yield Finding(NOTE, found, "`stk watch` and `stk requeue` let it start at once")
    else:
        yield Finding(OK, f"a requeued job may start after {delay_s} s")


def requeue_delay_s(cluster: Cluster) -> int | None:
    """Return the seconds before a requeued job may start: cred_expire, since 25.11 requeue_delay."""
    given = cluster.parameter("AuthInfo", "cred_expire") or str(_CRED_EXPIRE_S)
    if cluster.version >= (25, 11):
        given = cluster.parameter("SchedulerParameters", "requeue_delay") or ""
    return int(given) if given.isdecimal() else None


def limits(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about limits of the size and number of jobs. Pure."""
    size, name = cluster.value("MaxArraySize"), "MaxArraySize"
    lower = cluster.parameter("SchedulerParameters", "max_array_tasks") or ""
    if size.isdecimal() and lower.isdecimal() and int(lower) < int(size):
        size, name = lower, "max_array_tasks"
    if size.isdecimal() and int(size) > 1:
        yield Finding(OK, f"an array has at most {size} tasks ({name})", "a larger sweep needs several")
    elif size:
        yield Finding(NOTE, f"job arrays are disabled ({name})", "`stk sweep` needs them")
    if jobs := cluster.value("MaxJobCount"):
        yield Finding(OK, f"the controller keeps at most {jobs} jobs of all users (MaxJobCount)")
    yield from _of_the_user(cluster)
    over = cluster.value("OverTimeLimit")
    if over and not over.startswith("0 "):
        yield Finding(NOTE, f"a job may run {over} over its limit (OverTimeLimit)", "do not count on it")
    yield from _memory(cluster)


def _of_the_user(cluster: Cluster) -> Iterator[Finding]:
    is_enforced = cluster.value("AccountingStorageEnforce").lower() not in _UNENFORCED
    if cluster.has_accounting and not is_enforced:
        yield Finding(OK, "limits of accounts and QOS are not enforced (AccountingStorageEnforce)")
        return
    for own in cluster.associations or ():
        where = f" in partition {own.partition}" if own.partition else ""
        yield from _limited(f"account {own.account}{where}", own.limits, "resources.account")
    open_to = {name for own in cluster.associations or () for name in own.qos}
    for each in cluster.qos or ():
        if each.name in open_to:
            yield from _limited(f"QOS {each.name}", each.limits, "resources.qos")


def _limited(whose: str, limits: Mapping[str, str], key: str) -> Iterator[Finding]:
    if limits:
        listed = "; ".join(f"{value} {_WORDS[name]} ({name})" for name, value in limits.items())
        yield Finding(NOTE, f"{whose}: at most {listed}", "larger requests wait, or are refused", key)


def _memory(cluster: Cluster) -> Iterator[Finding]:
    if "MEMORY" not in cluster.value("SelectTypeParameters").upper():
        found = "memory is not allocated to jobs (SelectTypeParameters)"
        follows = "jobs on one host may take it from each other; resources.mem only picks hosts"
        yield Finding(NOTE, found, follows)
        return
    for name in ("MaxMemPerNode", "MaxMemPerCPU"):
        if cluster.value(name).isdecimal():
            yield Finding(NOTE, f"no job gets more memory than {name}={cluster.value(name)} (MB)")
    # Slurm prints UNLIMITED for an unset value.
    site = {n: cluster.value(n) for n in ("DefMemPerNode", "DefMemPerCPU") if cluster.value(n).isdecimal()}
    own = {each.default_memory for each in cluster.partitions if each.default_memory}
    default = ", ".join(sorted(own) or [f"{name}={value}" for name, value in site.items()])
    if default:
        found = f"a job that asks for no memory gets little: {default} (MB)"
        yield Finding(NOTE, found, "request it", "resources.mem")
    else:
        found = "a job that asks for no memory gets all of its host"
        follows = "so it waits for an empty host; request the memory that it needs"
        yield Finding(NOTE, found, follows, "resources.mem")


def hosts(cluster: Cluster) -> Iterator[Finding]:
    """Yield findings about processes, processors, memory and GPUs on a job's hosts. Pure."""
    yield _processes(cluster)
    yield _processors(cluster)
    yield _memory_of_a_host(cluster)
    if "gpu" in cluster.value("GresTypes").split(","):
        yield _devices(cluster)
    if cluster.setting("JobAcctGatherType") in ("", "none"):
        found = "Slurm does not measure what jobs use (JobAcctGatherType)"
        yield Finding(NOTE, found, "sacct and seff cannot show the peak of memory")
    limits = cluster.value("PropagateResourceLimits")
    if limits and limits != "NONE":
        found = f"limits of your shell apply in jobs too (PropagateResourceLimits={limits})"
        yield Finding(OK, found, "set them with `ulimit` before you submit")


def _processes(cluster: Cluster) -> Finding:
    kind = cluster.setting("ProctrackType")
    if kind == "cgroup":
        return Finding(OK, "all processes of a job end with it (proctrack/cgroup)")
    found = f"processes that leave their parents may outlive a job (proctrack/{kind})"
    follows = "the run's fence keeps leftover processes of an earlier attempt from writing"
    return Finding(NOTE, found, follows)


def _processors(cluster: Cluster) -> Finding:
    plugins = {name.rpartition("/")[2] for name in cluster.value("TaskPlugin").split(",")}
    if plugins & {"cgroup", "affinity"}:
        return Finding(OK, f"tasks are bound to their processors (TaskPlugin {', '.join(sorted(plugins))})")
    found = "tasks may use every processor of their host (TaskPlugin none)"
    follows = "jobs that share a host slow each other down: resources.exclusive=true where that matters"
    return Finding(NOTE, found, follows, "resources.exclusive")


def _memory_of_a_host(cluster: Cluster) -> Finding:
    limits = cluster.value("ConstrainRAMSpace").lower()
    if limits == "yes" or cluster.parameter("JobAcctGatherParams", "OverMemoryKill") is not None:
        return Finding(OK, "a job that uses more memory than requested is killed", "", "resources.mem")
    if limits == "no":
        return Finding(NOTE, "no job is kept to the memory it asked for", "a host may run out of it")
    return Finding(NOTE, "whether jobs are kept to their memory is unknown (cgroup.conf)")


def _devices(cluster: Cluster) -> Finding:
    constrained = cluster.value("ConstrainDevices").lower()
    if constrained == "yes":
        found = "a job sees only its own GPUs (ConstrainDevices)"
        return Finding(OK, found, "CUDA_VISIBLE_DEVICES counts from 0 in each job")
    found = "whether other GPUs can be reached is unknown (ConstrainDevices)"
    if constrained == "no":
        found = "other jobs' GPUs can be reached (ConstrainDevices)"
    follows = "CUDA_VISIBLE_DEVICES names a job's GPUs by number on the host: do not change it"
    return Finding(NOTE, found, follows)
