"""Heartbeats of the ranks, and the rank that is at fault if all of them hang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.run.phases import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The last heartbeat of a rank.

    still_s    seconds without progress
    limit_s    seconds after which it counts as hanging; None for no limit
    waits      whether it is in a collective, waiting for the others
    is_silent  whether its heartbeat has stopped: a stopped process, or a lost host
    place      file, line and function of its main thread
    stack      stack of its main thread
    failure_context  its GPU, batch and memory
    """

    rank: int
    host: str = "an unknown host"
    phase: str = "unknown"
    step: int = 0
    still_s: float = 0.0
    limit_s: float | None = None
    waits: bool = False
    is_silent: bool = False
    place: str = ""
    stack: str = ""
    failure_context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stands_still(self) -> bool:
        return self.limit_s is not None and self.still_s > self.limit_s


def culprit_of(ranks: Sequence[Heartbeat]) -> Heartbeat | None:
    """The rank that keeps all others waiting; None while a rank may still be working.

    If all of them wait, none is at fault, and the one that is furthest behind is returned.
    """
    silent = [rank for rank in ranks if rank.is_silent]
    if silent:
        return silent[0]
    if not all(rank.stands_still for rank in ranks):
        return None
    return min(ranks, key=lambda rank: (suspicion(rank), rank.step, rank.rank))


def suspicion(rank: Heartbeat) -> int:
    """Sort key, the most suspect first: 0 if a rank does not wait, 1 if it may wait, 2 if it waits."""
    if rank.waits or rank.phase == Phase.COMMUNICATION:
        return 2
    # Layers such as SyncBatchNorm sum in the backward pass, so a rank may wait there, too.
    return 1 if rank.phase == Phase.BACKWARD else 0


def format_hang(culprit: Heartbeat, size: int) -> str:
    """Describe a hang in one sentence."""
    who = f"rank {culprit.rank} on {culprit.host}"
    where = f"{culprit.phase} at step {culprit.step}"
    if culprit.is_silent:
        return (
            f"{who} gives no sign of life, last seen in {where}: its process is stopped, or its host is gone"
        )
    place = f" ({culprit.place})" if culprit.place else ""
    if size > 1 and suspicion(culprit) == 2:
        return (
            f"all {size} ranks wait for each other, {who} in {where}{place}: "
            "the network between the hosts may have lost what one of them sent"
        )
    others = ", while the others wait for it" if size > 1 else ""
    return f"{who} has stood still for {culprit.still_s:.0f} s in {where}{place}{others}"
