"""One start of a run, read from the traces of a tool."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Times of a start in seconds since 1970; None if it was not reached or not reported.

    name      the same as `start` of tools.Step
    began     the process of rank 0 was started
    imported  the imports were done
    met       the rendezvous of the ranks was done
    loaded    the checkpoint was loaded; ready for the first step
    saves     when training paused for a checkpoint, as begin and end
    """

    name: str
    began: float
    imported: float | None = None
    met: float | None = None
    loaded: float | None = None
    saves: tuple[tuple[float, float], ...] = field(default=())
