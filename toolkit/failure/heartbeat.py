"""Heartbeats: what the ranks say of themselves, and whom they tell of when all stand still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Phases in which a rank waits for the others, or may be although it does not look like it: DDP sums up
#: gradients in backward.
_WAITING, _PERHAPS_WAITING = "communication", "backward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What a rank has last said of itself.

    still_s    seconds for which its beats have stood still
    limit_s    how long they may
    waits      whether it is in a collective, waiting for the others
    is_silent  whether its heartbeat has stopped: a stopped process, or a lost host
    place      file, line and function at work
    stack      of its main thread
    scene      what it works with (toolkit.scene)
    """

    rank: int
    host: str
    phase: str
    step: int
    still_s: float
    limit_s: float | None
    waits: bool = False
    is_silent: bool = False
    place: str = ""
    stack: str = ""
    scene: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stands_still(self) -> bool:
        return self.limit_s is not None and self.still_s > self.limit_s


def culprit_of(ranks: Sequence[Heartbeat]) -> Heartbeat | None:
    """The rank that keeps all others waiting; None while some rank may still be at work.

    Where all of them wait, none of them is at fault: then it is the one that is furthest behind.
    """
    silent = [rank for rank in ranks if rank.is_silent]
    if silent:
        return silent[0]
    if not all(rank.stands_still for rank in ranks):
        return None
    return min(ranks, key=lambda rank: (suspicion(rank), rank.step, rank.rank))


def suspicion(rank: Heartbeat) -> int:
    """The less, the more suspect: 0 for who does something else than wait, 1 for who may, 2 for who waits."""
    if rank.waits or rank.phase == _WAITING:
        return 2
    return 1 if rank.phase == _PERHAPS_WAITING else 0


def tell_hang(culprit: Heartbeat, size: int) -> str:
    """One sentence for a tired person."""
    who = f"rank {culprit.rank} on {culprit.host}"
    where = f"{culprit.phase} at step {culprit.step}"
    if culprit.is_silent:
        return (
            f"{who} gives no sign of life any more, last seen in {where}: its process is stopped, "
            "or its host is gone"
        )
    place = f" ({culprit.place})" if culprit.place else ""
    if size > 1 and suspicion(culprit) == 2:
        return (
            f"all {size} ranks wait for each other, {who} in {where}{place}: "
            "the network between the hosts may have lost what one of them sent"
        )
    others = ", while the others wait for it" if size > 1 else ""
    return f"{who} has stood still for {culprit.still_s:.0f} s in {where}{place}{others}"
