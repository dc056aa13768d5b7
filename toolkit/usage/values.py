"""What each rank of a start took of its machine, as it has written it down itself.

A megabyte is 2**20 bytes. 100 per cent of CPU is one core at work all the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolkit.files import read_json
from toolkit.rundir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One point of a history.

    time             seconds since the epoch
    rss_mb           memory of the rank's process and of the processes that it started
    cpu_percent      of these, since the point before
    gpu_utilization  per cent, of the whole GPU; None where there is none or it does not tell
    gpu_memory_mb    in use on the whole GPU, by whoever; likewise
    """

    time: float
    rss_mb: float
    cpu_percent: float
    gpu_utilization: float | None = None
    gpu_memory_mb: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsage:
    """The GPU of a rank: now, on average and at most. Utilisation is None where the GPU does not tell."""

    name: str
    uuid: str
    utilization: float | None
    utilization_mean: float | None
    memory_mb: float
    memory_peak_mb: float
    memory_total_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankUsage:
    """One rank in one start: now, on average and at most.

    time             when this was written, seconds since the epoch
    device           cpu, cuda:0, …
    samples          how often it was measured, over so many seconds
    cpus             cores that the process may run on
    memory_limit_mb  of its control group, and so of all processes in it; None where there is no limit
    history          at most 120 points over the whole start, oldest first
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
        """The document of the file; points of the history as rows in the order of their fields."""
        rows = [list(asdict(moment).values()) for moment in self.history]
        return {**asdict(self), "history": rows}


def read_usage(run: RunDir, nonce: str) -> list[RankUsage]:
    """What the ranks of one start took, by rank. One whose file is missing or damaged is left out."""
    found = (_read(path) for path in run.usages(nonce))
    return sorted((usage for usage in found if usage is not None), key=lambda usage: usage.rank)


def usage_of(run: RunDir, nonce: str, rank: int) -> RankUsage | None:
    """What one rank of a start took; None where its file is missing or damaged."""
    return _read(run.usage(nonce, rank))


def _read(path: Path) -> RankUsage | None:
    try:
        return _usage(read_json(path))
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def _usage(document: Mapping[str, Any]) -> RankUsage:
    gpu = document["gpu"]
    return RankUsage(
        time=_number(document["time"]),
        nonce=str(document["nonce"]),
        rank=int(document["rank"]),
        host=str(document["host"]),
        device=str(document["device"]),
        samples=int(document["samples"]),
        seconds=_number(document["seconds"]),
        rss_mb=_number(document["rss_mb"]),
        rss_peak_mb=_number(document["rss_peak_mb"]),
        cpu_percent=_number(document["cpu_percent"]),
        cpu_percent_mean=_number(document["cpu_percent_mean"]),
        cpus=int(document["cpus"]),
        memory_limit_mb=_maybe(document["memory_limit_mb"]),
        gpu=None if gpu is None else _gpu(gpu),
        history=tuple(_moment(*row) for row in document["history"]),
    )


def _gpu(document: Mapping[str, Any]) -> GpuUsage:
    return GpuUsage(
        name=str(document["name"]),
        uuid=str(document["uuid"]),
        utilization=_maybe(document["utilization"]),
        utilization_mean=_maybe(document["utilization_mean"]),
        memory_mb=_number(document["memory_mb"]),
        memory_peak_mb=_number(document["memory_peak_mb"]),
        memory_total_mb=_number(document["memory_total_mb"]),
    )


def _moment(time: Any, rss_mb: Any, cpu_percent: Any, utilization: Any, memory_mb: Any) -> Moment:
    return Moment(
        time=_number(time),
        rss_mb=_number(rss_mb),
        cpu_percent=_number(cpu_percent),
        gpu_utilization=_maybe(utilization),
        gpu_memory_mb=_maybe(memory_mb),
    )


def _maybe(value: Any) -> float | None:
    return None if value is None else _number(value)


def _number(value: Any) -> float:
    """A finite number. Raises TypeError or ValueError."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is no number")
    return number
