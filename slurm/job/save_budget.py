"""Compare the time of a save with the time that Slurm leaves before it ends a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slurm.client import programs
from slurm.client.parse import Partition, parse_seconds
from slurm.client.quantities import parse_minutes
from slurm.client.stop_reason import length_s
from slurm.config.resources import Resources
from slurm.submission.batch.job_options import partitions_of
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir

#: Largest share of a budget for a save: disks are slower when many jobs save at once.
_SHARE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds between a stop signal and the end of the processes.

    name   the setting or event that gives them
    cure   what to do if they are too few
    """

    name: str
    seconds: float
    cure: str


def too_short(lead_s: float, budgets: Iterable[Budget]) -> list[str]:
    """Return a sentence for each budget that is too short for one step and a save (lead_s)."""
    return [
        f"a step and a save take {lead_s:.1f} s here, but {budget.name} leaves {budget.seconds:g} s: "
        f"{budget.cure}"
        for budget in budgets
        if takes_too_long(lead_s, budget.seconds)
    ]


def takes_too_long(lead_s: float, seconds: float) -> bool:
    """Whether one step and a save (lead_s) take too much of a budget of these seconds."""
    return lead_s > _SHARE * seconds


def budgets_of_job(job: Mapping[str, str]) -> list[Budget]:
    """Return the budgets of a running job, from its record. Calls scontrol twice."""
    found = budgets(job.get("Partition", "").split(","), programs.partitions(), programs.config())
    return [*_of_time_limit(length_s(job)), *found]


def budgets_of_request(resources: Resources) -> list[Budget]:
    """Return the budgets of a future job with these resources. Calls scontrol twice."""
    partitions = programs.partitions()
    found = budgets(partitions_of(resources, partitions), partitions, programs.config())
    minutes = parse_minutes(resources.time) if resources.time else None
    return [*_of_time_limit(None if minutes is None else 60.0 * minutes), *found]


def budgets(names: Iterable[str], partitions: Iterable[Partition], config: Mapping[str, str]) -> list[Budget]:
    """Return the budgets of preemptions in the named partitions, from the controller's answers."""
    if config.get("PreemptType", "") != "preempt/partition_prio":
        # With QOS the grace is the QOS's, which not every cluster lets users read.
        return []
    allowed = set(names)
    kill_wait_s = parse_seconds(config.get("KillWait", ""))
    return [
        Budget(
            name=f"a preemption in partition {each.name} "
            f"(GraceTime {each.grace_s} s, KillWait {kill_wait_s} s)",
            seconds=each.grace_s + kill_wait_s,
            cure="save more often (checkpoint.every_steps or every_minutes), or later steps are lost",
        )
        for each in partitions
        if each.name in allowed and each.can_be_preempted
    ]


def _of_time_limit(seconds: float | None) -> list[Budget]:
    """The budget of a job of this length: the ranks leave when they must, but not in its first half."""
    if seconds is None:
        return []
    name = f"half of the time limit of {seconds / 60:g} min"
    return [Budget(name=name, seconds=seconds / 2, cure="raise resources.time")]


def measured_lead_s(run: RunDir) -> float | None:
    """Return the seconds of a step and a save in earlier attempts of a run; None if none was measured."""
    measured = [
        attempt.step_s + attempt.save_s
        for attempt in read_attempts(run)
        if attempt.step_s is not None and attempt.save_s is not None
    ]
    return max(measured, default=None)
