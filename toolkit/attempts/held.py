"""What the starts of a run held, and for how many hours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.attempts.goodput import AttemptTime, Goodput, timeline
from toolkit.attempts.ledger import read_attempts
from toolkit.files import read_json_lines
from toolkit.rundir import RunDir

_HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Hours of GPUs, or of CPUs: all that were held, and those of steps that count."""

    held: float = 0.0
    useful: float = 0.0

    @property
    def lost(self) -> float:
        return self.held - self.useful

    def __add__(self, other: Hours) -> Hours:
        return Hours(held=self.held + other.held, useful=self.useful + other.useful)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One start: where its time went, and how many GPUs and CPUs it held meanwhile."""

    time: AttemptTime
    gpus: int = 0
    cpus: int = 0

    @property
    def gpu_hours(self) -> Hours:
        return _hours(self.time.spent, self.gpus)

    @property
    def cpu_hours(self) -> Hours:
        return _hours(self.time.spent, self.cpus)


def _hours(spent: Goodput, count: int) -> Hours:
    return Hours(held=count * spent.allocated / _HOUR_S, useful=count * spent.training / _HOUR_S)


def held(run: RunDir, now: float, *, cpus_per_task: int = 1, data_parallel: bool = False) -> list[Held]:
    """Return what every start of a run held, oldest first; `now` as in timeline.

    cpus_per_task  that were asked for
    data_parallel  one process computes on all GPUs that it sees
    """
    lines = {line["attempt"]: line for line in read_attempts(run)}
    return [
        Held(
            time=each,
            gpus=_gpus(run, lines[each.attempt], data_parallel),
            cpus=cpus_per_task * (lines[each.attempt].get("world_size") or 1),
        )
        for each in timeline(run, now)
    ]


def total_time(starts: Iterable[Held]) -> Goodput:
    """Return where the time of all starts went."""
    return sum((start.time.spent for start in starts), Goodput())


def total_gpu_hours(starts: Iterable[Held]) -> Hours:
    """Return the hours of GPUs of all starts."""
    return sum((start.gpu_hours for start in starts), Hours())


def total_cpu_hours(starts: Iterable[Held]) -> Hours:
    """Return the hours of CPUs of all starts."""
    return sum((start.cpu_hours for start in starts), Hours())


def _gpus(run: RunDir, line: Mapping[str, Any], data_parallel: bool) -> int:
    """Count the GPUs that the ranks of a start said they compute on; two ranks may share one."""
    ranks = [rank for rank in read_json_lines(run.ranks(str(line.get("nonce")))) if "device" in rank]
    if not ranks:
        return (line.get("world_size") or 1) if line.get("device") == "cuda" else 0
    on_gpus = [rank for rank in ranks if str(rank["device"]).startswith("cuda")]
    if data_parallel:
        return sum(_visible(rank) for rank in on_gpus)
    return len({(rank.get("host"), rank.get("cuda_visible_devices"), rank["device"]) for rank in on_gpus})


def _visible(rank: Mapping[str, Any]) -> int:
    names: Sequence[str] = str(rank.get("cuda_visible_devices") or "").split(",")
    return max(1, len([name for name in names if name]))
