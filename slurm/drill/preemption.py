"""Whether a user can have a job preempted for real: by a job of their own, in a partition above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm.answers import fields_of_line
from slurm.hostlist import expand

#: Modes in which a preempted job may come back.
_COMES_BACK = ("REQUEUE",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A partition as the scheduler ranks it."""

    name: str
    is_default: bool
    priority: int
    preempt_mode: str
    grace_s: int
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A partition for the job, and one above it for what preempts it, on hosts of both."""

    low: Tier
    high: Tier
    hosts: frozenset[str]


def parse_tiers(text: str) -> list[Tier]:
    """The partitions that are up, from `scontrol --oneliner show partition`."""
    lines = [fields_of_line(line) for line in text.splitlines() if line.startswith("PartitionName=")]
    return [_tier(fields) for fields in lines if fields.get("State", "UP") == "UP"]


def _tier(fields: Mapping[str, str]) -> Tier:
    hosts = fields.get("Nodes", "")
    return Tier(
        name=fields["PartitionName"],
        is_default=fields.get("Default") == "YES",
        priority=_number(fields.get("PriorityTier", "")),
        preempt_mode=fields.get("PreemptMode", ""),
        grace_s=_number(fields.get("GraceTime", "")),
        hosts=frozenset() if hosts in ("", "(null)") else frozenset(expand(hosts)),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def choose_pair(tiers: Sequence[Tier], config: Mapping[str, str], wanted: str | None) -> Pair | str:
    """Where to have a job preempted; where that is impossible, why.

    wanted is the partition that the job must be in; None lets this choose one.
    """
    if config.get("PreemptType") != "preempt/partition_prio":
        return (
            f"the cluster's PreemptType is {config.get('PreemptType', 'unknown')}, not preempt/partition_prio"
        )
    if wanted is not None and not any(tier.name == wanted for tier in tiers):
        return f"the partition {wanted} is not up"
    pairs = [
        Pair(low=low, high=high, hosts=low.hosts & high.hosts)
        for low in tiers
        if wanted in (None, low.name) and low.preempt_mode in _COMES_BACK
        for high in tiers
        if high.priority > low.priority and low.hosts & high.hosts
    ]
    if not pairs:
        where = f"of the partition {wanted}" if wanted else "of any partition"
        return f"no jobs {where} can be preempted and requeued by those of another one"
    # The user's usual partition first, then the one with the most hosts in common.
    return max(pairs, key=lambda pair: (pair.low.is_default, len(pair.hosts), -pair.high.priority))
