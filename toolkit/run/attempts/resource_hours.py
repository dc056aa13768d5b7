"""GPU-hours and CPU-hours that the attempts of a run used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.config.schema import RunPolicy
from toolkit.run.attempts.goodput import AttemptTime, Goodput, timeline
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.records.ranks import RankRecord, read_ranks
from toolkit.run.run_dir import RunDir

_HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Hours of GPUs, or of CPUs: all allocated hours, and those of steps that count."""

    allocated: float = 0.0
    useful: float = 0.0

    @property
    def lost(self) -> float:
        return self.allocated - self.useful

    def __add__(self, other: Hours) -> Hours:
        return Hours(allocated=self.allocated + other.allocated, useful=self.useful + other.useful)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptUsage:
    """One attempt: where its time went, and how many GPUs and CPUs were allocated to it."""

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
    return Hours(allocated=count * spent.allocated / _HOUR_S, useful=count * spent.training / _HOUR_S)


def attempt_usage(
    run: RunDir, now: float, policy: RunPolicy, *, data_parallel: bool = False
) -> list[AttemptUsage]:
    """The usage of each attempt of a run, oldest first; `now` as in timeline.

    policy         gives the number of cores of a rank
    data_parallel  one process computes on all GPUs that it sees
    """
    records = {each.attempt: each for each in read_attempts(run)}
    found = []
    for time in timeline(run, now):
        record = records[time.attempt]
        gpus = _gpus(run, record, data_parallel)
        cpus = policy.cpus_of_rank(on_gpu=None if gpus is None else gpus > 0) * (record.world_size or 1)
        found.append(AttemptUsage(time=time, gpus=gpus or 0, cpus=cpus))
    return found


def total_time(attempts: Iterable[AttemptUsage]) -> Goodput:
    return sum((attempt.time.spent for attempt in attempts), Goodput())


def total_gpu_hours(attempts: Iterable[AttemptUsage]) -> Hours:
    return sum((attempt.gpu_hours for attempt in attempts), Hours())


def total_cpu_hours(attempts: Iterable[AttemptUsage]) -> Hours:
    return sum((attempt.cpu_hours for attempt in attempts), Hours())


def _gpus(run: RunDir, record: AttemptRecord, data_parallel: bool) -> int | None:
    """Count the GPUs of an attempt's ranks by UUID; two ranks may share one.

    Returns None if no device was recorded, as by a command or script.
    """
    ranks = [rank for rank in read_ranks(run, record.nonce, record.attempt) if rank.device is not None]
    if not ranks:
        if record.device is None:
            return None
        return (record.world_size or 1) if record.device == "cuda" else 0
    on_gpus = [rank for rank in ranks if str(rank.device).startswith("cuda")]
    if data_parallel:
        return sum(_visible(rank) for rank in on_gpus)
    # Without a UUID, host, visible devices and device identify a GPU; several ranks may share it.
    return len({rank.gpu or (rank.host, rank.cuda_visible_devices, rank.device) for rank in on_gpus})


def _visible(rank: RankRecord) -> int:
    # Earlier versions did not record the number.
    names = (rank.cuda_visible_devices or "").split(",")
    return rank.usable_gpus or max(1, len([name for name in names if name]))
