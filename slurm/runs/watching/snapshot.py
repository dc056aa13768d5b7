"""The view of one run, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from slurm.status.rows import RunStatus
from toolkit.monitoring.usage.values import RankUsage
from toolkit.run.attempts.goodput import Span
from toolkit.run.attempts.records import AttemptRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A series of numbers under its name, oldest first."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank of the newest start.

    phase    what it said last that it does; empty where it has said nothing
    silent_s seconds since it said so
    """

    rank: int
    host: str
    device: str
    phase: str = ""
    silent_s: float = 0.0
    usage: RankUsage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one moment.

    now      seconds since the epoch
    spans    its time so far, oldest first, and saves, the moments of its checkpoints
    starts   the newest ones that began, oldest first, of start_count
    ranks    the first ones, of rank_count
    log      the last lines of rank 0
    """

    now: float
    row: RunStatus
    curves: tuple[Curve, ...] = ()
    spans: tuple[Span, ...] = ()
    saves: tuple[float, ...] = ()
    starts: tuple[AttemptRecord, ...] = ()
    start_count: int = 0
    ranks: tuple[Rank, ...] = ()
    rank_count: int = 0
    log: tuple[str, ...] = ()
