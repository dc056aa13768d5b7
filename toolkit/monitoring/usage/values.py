"""Resource usage of each rank of an attempt, as recorded by the rank.

A megabyte is 2**20 bytes. 100 per cent of CPU is one core that is always busy.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolkit.files import read_json
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One point of a history.

    time             seconds since the epoch
    rss_mb           memory of the rank's process and of the processes that it started
    cpu_percent      CPU use of these processes since the point before
    gpu_utilization  per cent, of the whole GPU; None without a GPU, or if the GPU does not report it
    gpu_memory_mb    in use on the whole GPU, by all processes; None likewise
    """

    time: float
    rss_mb: float
    cpu_percent: float
    gpu_utilization: float | None = None
    gpu_memory_mb: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsage:
    """The GPU of a rank: now, on average and at most. Utilisation is None if the GPU does not report it."""

    name: str
    uuid: str
    memory_mb: float
    memory_peak_mb: float
    memory_total_mb: float
    utilization: float | None = None
    utilization_mean: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankUsage:
    """One rank in one attempt: now, on average and at most.

    time             when this was written, seconds since the epoch
    device           cpu, cuda:0, …
    samples          number of measurements; seconds: the time that they cover
    cpus             cores that the process may run on
    memory_limit_mb  limit of the control group, for all its processes together; None without a limit
    history          at most 120 points over the whole attempt, oldest first
    """

    time: float
    nonce: str
    rank: int
    host: str
    device: str
    samples: int
    seconds: float
    rss_mb: float
    rss_peak_mb: float
    cpu_percent: float
    cpu_percent_mean: float
    cpus: int
    memory_limit_mb: float | None = None
    gpu: GpuUsage | None = None
    history: tuple[Moment, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The content of the file; points of the history are rows in the order of their fields."""
        rows = [list(asdict(moment).values()) for moment in self.history]
        return {**asdict(self), "history": rows}


def read_usage(run: RunDir, nonce: str) -> list[RankUsage]:
    """Return the use of the ranks of one attempt, by rank; missing and damaged files are left out."""
    found = (_read(path) for path in run.usages(nonce))
    return sorted((usage for usage in found if usage is not None), key=lambda usage: usage.rank)


def usage_of(run: RunDir, nonce: str, rank: int) -> RankUsage | None:
    """Return the use of one rank of an attempt; None if its file is missing or damaged."""
    return _read(run.usage(nonce, rank))


def _read(path: Path) -> RankUsage | None:
    try:
        document = read_json(path)
        gpu, rows = document["gpu"], document["history"]
        return replace(
            from_json(RankUsage, document),
            gpu=None if gpu is None else from_json(GpuUsage, gpu),
            history=tuple(from_json(Moment, dict(zip(Moment.__slots__, row, strict=True))) for row in rows),
        )
    except (AttributeError, KeyError, OSError, TypeError, ValueError):
        return None
