"""One start of a run, as every tool's traces tell it to the driver."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Times in seconds since 1970; None for what it did not come to, or said nothing of.

    name      as of tools.Step
    began     the process of rank 0 was started
    imported  its imports were done
    met       its ranks had found each other
    loaded    it was ready for its first step
    saves     when training stood still for a checkpoint, as begin and end
    """

    name: str
    began: float
    imported: float | None = None
    met: float | None = None
    loaded: float | None = None
    saves: tuple[tuple[float, float], ...] = field(default=())
