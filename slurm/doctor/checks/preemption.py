"""Findings about preemption: by which jobs, how it is announced, and whether there is time for a save."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from slurm.config.resources import Resources
from slurm.doctor.checks.saves import Saves
from slurm.doctor.cluster import Cluster
from slurm.doctor.findings import CHANGE, NOTE, OK, Finding
from slurm.doctor.partitions import preempting
from slurm.job.save_budget import takes_too_long
from toolkit.system.output.amounts import counted
from toolkit.system.output.few import few

#: Settings that send the job's own signal to a preempted job: the second since 23.02.
_SIGNAL_PARAMETERS = (
    ("SlurmctldParameters", "preempt_send_user_signal"),
    ("PreemptParameters", "send_user_signal"),
)
_MODES = {
    "REQUEUE": "the run saves, is requeued, and continues",
    "CANCEL": "Slurm ends the job instead of requeueing it: the run saves and requeues itself, if there is "
    "time; otherwise it stays ended until stk resume",
    "SUSPEND": "its processes pause and continue later: nothing is saved, memory stays allocated. "
    "After more than train.collective_timeout_s a run of several ranks restarts, as after a crash",
}
#: Largest number of partitions or QOS that a line names.
_NAMED = 4
_MORE_OFTEN = "checkpoint.every_minutes"


def preemption(cluster: Cluster, saves: Saves | None, partition: str = "") -> Iterator[Finding]:
    """Yield findings about preemption; only of one partition if it is given. Pure."""
    warned = f"a command of yours is warned {Resources().signal_s} s before the limit"
    yield Finding(OK, "near its time limit a run leaves as early as its steps and saves need", warned)
    kind = cluster.setting("PreemptType")
    if kind in ("", "none"):
        yield Finding(OK, "no job is preempted (PreemptType=preempt/none)")
        yield _measured(saves)
        return
    sends_own = any(cluster.parameter(*each) is not None for each in _SIGNAL_PARAMETERS)
    name = "the job's own signal (USR2)" if sends_own else "SIGTERM"
    yield Finding(OK, f"a preempted job gets {name}", "a run saves and ends on this signal")
    if (exempt := cluster.value("PreemptExemptTime")) not in ("", "00:00:00"):
        yield Finding(OK, f"no job is preempted in its first {exempt} (PreemptExemptTime)")
    yield from _by_qos(cluster, saves) if kind == "qos" else _by_partition(cluster, saves, partition)
    yield _measured(saves)


def _measured(saves: Saves | None) -> Finding:
    if saves is None:
        found = "no save has been measured here yet"
        return Finding(NOTE, found, "after a save its time is compared with the time allowed")
    return Finding(
        OK,
        f"saves of your last {counted(saves.runs, 'run')} took {saves.median_s:.1f} s (median of "
        f"{saves.saves}), {saves.longest_s:.1f} s at most ({saves.longest_run})",
    )


def _by_partition(cluster: Cluster, saves: Saves | None, only: str) -> Iterator[Finding]:
    alike = defaultdict(list)
    above = preempting(cluster)
    for each in cluster.partitions:
        if above.get(each.name) and only in ("", each.name):
            alike[_mode(each.preempt_mode), each.grace_s, above[each.name]].append(each.name)
    for (mode, grace_s, takers), names in alike.items():
        what = f"partition{'s' if len(names) > 1 else ''} {', '.join(names)}"
        yield _leave(what, f"partition {few(takers, _NAMED)}", mode, grace_s, cluster.kill_wait_s, saves)
    if not alike:
        which = f"partition {only}" if only else "any other that it shares hosts with"
        yield Finding(OK, f"no partition preempts {which}", "nothing is preempted there")


def _by_qos(cluster: Cluster, saves: Saves | None) -> Iterator[Finding]:
    if cluster.qos is None:
        yield Finding(NOTE, "jobs are preempted by QOS, but the QOS cannot be listed", "ask your site")
        return
    for victim in cluster.qos:
        takers = tuple(each.name for each in cluster.qos if victim.name in each.preempts)
        own = victim.preempt_mode.upper()
        mode = _mode(cluster.value("PreemptMode") if own in ("", "CLUSTER") else own)
        if takers and mode != "OFF":
            what = f"QOS {victim.name}"
            yield _leave(what, f"QOS {few(takers, _NAMED)}", mode, victim.grace_s, cluster.kill_wait_s, saves)
    if not any(each.preempts for each in cluster.qos):
        yield Finding(OK, "no QOS preempts another one")


def _mode(printed: str) -> str:
    """Return the mode of a setting: REQUEUE for GANG,REQUEUE; SUSPEND if only others are named."""
    modes = [mode for mode in printed.upper().split(",") if mode not in ("GANG", "WITHIN", "PRIORITY")]
    return modes[0] if modes else "SUSPEND"


def _leave(what: str, takers: str, mode: str, grace_s: int, kill_wait_s: int, saves: Saves | None) -> Finding:
    """Return the finding about one kind of preemption, compared with the longest measured save."""
    found = f"{what}: jobs are preempted by those of {takers} (PreemptMode {mode})"
    does = _MODES.get(mode, "")
    if mode == "SUSPEND":
        return Finding(NOTE, found, does)
    total_s = grace_s + kill_wait_s
    found += f"; {total_s} s to save: GraceTime {grace_s} + KillWait {kill_wait_s}"
    if saves is not None and takes_too_long(saves.longest_s, total_s):
        lost = f"your longest save took {saves.longest_s:.1f} s: steps since the previous save may be lost"
        return Finding(CHANGE, found, f"{lost}; save more often, or choose another partition", _MORE_OFTEN)
    if saves is None and not grace_s:
        return Finding(NOTE, found, f"{does}; large models may need longer to save", _MORE_OFTEN)
    return Finding(OK if mode == "REQUEUE" else NOTE, found, does)
