"""Find out whether a user can preempt a job with another job, in a partition of higher priority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm.client.parse import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A partition for the job, one of higher priority for the preempting job, and their common hosts."""

    low: Partition
    high: Partition
    hosts: frozenset[str]


def choose_pair(partitions: Sequence[Partition], config: Mapping[str, str], wanted: str | None) -> Pair | str:
    """Return partitions in which a job can be preempted, or the reason why that is impossible.

    wanted   the partition that the job must be in; None: any
    """
    if config.get("PreemptType") != "preempt/partition_prio":
        return (
            f"the cluster's PreemptType is {config.get('PreemptType', 'unknown')}, not preempt/partition_prio"
        )
    up = [each for each in partitions if each.state == "UP"]
    if wanted is not None and not any(each.name == wanted for each in up):
        return f"the partition {wanted} is not up"
    pairs = [
        Pair(low=low, high=high, hosts=low.host_names & high.host_names)
        for low in up
        # Only in this mode Slurm requeues a preempted job.
        if wanted in (None, low.name) and low.preempt_mode == "REQUEUE"
        for high in up
        if high.priority_tier > low.priority_tier and low.host_names & high.host_names
    ]
    if not pairs:
        where = f"of the partition {wanted}" if wanted else "of any partition"
        return f"no jobs {where} can be preempted and requeued by those of another one"
    # The user's usual partition first, then the one with the most hosts in common.
    return max(pairs, key=lambda pair: (pair.low.is_default, len(pair.hosts), -pair.high.priority_tier))
