"""Advice on the requested memory, CPUs and GPUs, from the records of the ranks, and on the time limit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurm.client.quantities import format_mb, format_minutes, parse_mb, parse_minutes
from slurm.config.resources import CPUS_BESIDE_A_GPU, asks_for_gpus
from toolkit.monitoring.usage.values import RankUsage
from toolkit.report import formats
from toolkit.report.advice import Advice
from toolkit.report.model import RunSummary
from toolkit.system.output.few import few

#: Shares of the request: below the first it is too large, above the second too small.
LEAST_MEMORY, MOST_MEMORY = 0.5, 0.9
LEAST_CPUS, MOST_CPUS = 0.5, 0.95
#: Mean utilisation in per cent below which a GPU is idle, or has little to do.
IDLE_GPU, LOW_GPU = 15.0, 50.0
_ROOM = 1.25
_WORTH_MB = 1024
#: A shorter measurement is not used.
_MEASURED_S = 60.0
#: Below this share of the time limit, a shorter limit is advised.
LEAST_USED = 0.5
#: No advice for limits up to this: a shorter one has no advantage.
_LEAST_MINUTES = 30
#: Above this share of time for starts, a longer limit is advised.
MOST_STARTING = 0.05
#: The section `resources` as in job.yaml; in old runs, newer keys are missing.
Resources = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMemory:
    """Requested memory of a host: megabytes, the key, and the number of units (hosts, CPUs or GPUs)."""

    megabytes: int
    key: str
    units: int


def asked_cpus(resources: Resources) -> int:
    """Return the CPUs of each rank; without a request, the default of the plan."""
    return int(resources.get("cpus_per_task") or (CPUS_BESIDE_A_GPU if asks_for_gpus(resources) else 1))


def asked_memory(resources: Resources, ranks: Sequence[RankUsage]) -> AskedMemory | None:
    """Return the requested memory of a host with these ranks; None if no amount was requested.

    Raises UserError for an unknown notation.
    """
    gpus = len({rank.gpu.uuid for rank in ranks if rank.gpu})
    known = (("mem", 1), ("mem_per_cpu", len(ranks) * asked_cpus(resources)), ("mem_per_gpu", gpus))
    for key, units in known:
        text = resources.get(key)
        if text and units and (megabytes := units * parse_mb(str(text))):
            return AskedMemory(megabytes=megabytes, key=f"resources.{key}", units=units)
    return None


def memory_advice(summary: RunSummary, resources: Resources) -> Iterator[Advice]:
    """Yield advice if less memory is enough, or more is needed, on the host that used the largest share.

    A host's peak is estimated by the sum of its ranks' peaks, which is an upper bound.
    """
    hosts = [(ranks, asked_memory(resources, ranks)) for ranks in _hosts(summary.usage)]
    asked_for = [(_peak_mb(ranks), ranks, asked) for ranks, asked in hosts if asked is not None]
    if not asked_for:
        yield from _near_limit(summary.usage)
        return
    peak_mb, ranks, asked = max(asked_for, key=lambda host: host[0] / host[2].megabytes)
    share = peak_mb / asked.megabytes
    if share < LEAST_MEMORY and asked.megabytes - peak_mb > _WORTH_MB:
        why = "Less memory is free on more hosts, so the job starts sooner."
        yield _memory(asked, peak_mb, ranks[0].host, LEAST_MEMORY, why)
    elif share > MOST_MEMORY:
        why = "A run that exceeds its requested memory is killed."
        yield _memory(asked, peak_mb, ranks[0].host, MOST_MEMORY, why)


def _memory(asked: AskedMemory, peak_mb: float, host: str, share: float, reason: str) -> Advice:
    return Advice(
        topic="memory",
        found=f"{formats.size_mb(peak_mb)} at most on {host}",
        bound=f"{100 * share:.0f} % of {formats.size_mb(asked.megabytes)}",
        change=f"{asked.key}={format_mb(_rounded_mb(_ROOM * peak_mb / asked.units))}",
        reason=reason,
    )


def _near_limit(usage: Sequence[RankUsage]) -> Iterator[Advice]:
    """Yield advice if a host came near the cluster's own limit, without a request for memory."""
    for ranks in _hosts(usage):
        limit_mb, peak_mb = ranks[0].memory_limit_mb, _peak_mb(ranks)
        if limit_mb and peak_mb > MOST_MEMORY * limit_mb:
            asked = AskedMemory(megabytes=int(limit_mb), key="resources.mem", units=1)
            why = "No memory was requested, and above the cluster's own limit the run is killed."
            yield _memory(asked, peak_mb, ranks[0].host, MOST_MEMORY, why)
            return


def cpu_advice(summary: RunSummary, resources: Resources) -> Iterator[Advice]:
    """Yield advice if the ranks leave CPUs idle, or a GPU may wait for the CPUs."""
    ranks = [rank for rank in summary.usage if rank.seconds >= _MEASURED_S]
    if not ranks:
        return
    asked = asked_cpus(resources)
    busy = max(rank.cpu_percent_mean for rank in ranks) / 100
    enough = max(1, math.ceil(_ROOM * busy))
    if asked > 1 and busy < LEAST_CPUS * asked and enough < asked:
        bound, cpus = LEAST_CPUS, enough
        why = "Fewer CPUs are free on more hosts, so the job starts sooner."
    elif busy > MOST_CPUS * asked and any(rank.gpu for rank in ranks):
        bound, cpus = MOST_CPUS, 2 * asked
        why = "A GPU may be waiting for its samples."
    else:
        return
    yield Advice(
        topic="CPUs",
        found=f"{busy:.1f} of {asked} CPUs of a rank were busy",
        bound=f"{100 * bound:.0f} %",
        change=f"resources.cpus_per_task={cpus}",
        reason=why,
    )


def gpu_advice(summary: RunSummary, resources: Resources | None) -> Iterator[Advice]:
    """Yield advice if GPUs were allocated and not used, or little used."""
    if (
        resources is not None
        and asks_for_gpus(resources)
        # A command or script records no device: its GPUs are not measured.
        and any(attempt.device for attempt in summary.attempts)
        and not any(attempt.gpus for attempt in summary.attempt_usage)
    ):
        yield Advice(
            topic="GPUs",
            found="GPUs were requested, but the run trained on the CPU",
            bound="none",
            change="train.device=cuda",
            reason="An attempt without a GPU then fails at once. Or request no GPUs.",
        )
    means = _utilization([rank for rank in summary.usage if rank.seconds >= _MEASURED_S])
    if not means:
        return
    idle = sorted(rank for rank, mean in means.items() if mean < IDLE_GPU)
    mean = sum(means.values()) / len(means)
    if idle:
        ranks = f"rank{'s' if len(idle) > 1 else ''} {few(idle, 8)}"
        which = "all ranks" if len(idle) == len(means) else ranks
        found = f"the GPU of {which} was {min(means.values()):.0f} % busy"
        bound = f"idle below {IDLE_GPU:.0f} %"
    elif mean < LOW_GPU:
        found, bound = f"GPUs were {mean:.0f} % busy on average", f"low below {LOW_GPU:.0f} %"
    else:
        return
    yield Advice(
        topic="GPUs",
        found=found,
        bound=bound,
        change="fewer GPUs, or more work in a step: train.accumulation, train.batch_size, model",
        reason="Idle GPUs count as GPU-hours too. Another batch size or model changes the result.",
    )


def _utilization(ranks: Sequence[RankUsage]) -> dict[int, float]:
    """Return the mean utilisation of each rank's GPU over its attempts, in per cent."""
    found: dict[int, list[tuple[float, float]]] = {}
    for rank in ranks:
        if rank.gpu is not None and rank.gpu.utilization_mean is not None:
            found.setdefault(rank.rank, []).append((rank.seconds, rank.gpu.utilization_mean))
    return {
        rank: sum(seconds * mean for seconds, mean in parts) / sum(seconds for seconds, _ in parts)
        for rank, parts in found.items()
    }


def _hosts(usage: Sequence[RankUsage]) -> list[list[RankUsage]]:
    """Return groups of ranks that shared a host in an attempt."""
    found: dict[tuple[str, str], list[RankUsage]] = {}
    for rank in usage:
        found.setdefault((rank.nonce, rank.host), []).append(rank)
    return list(found.values())


def _peak_mb(ranks: Sequence[RankUsage]) -> float:
    return sum(rank.rss_peak_mb for rank in ranks)


def _rounded_mb(megabytes: float) -> int:
    """Round megabytes up to whole gigabytes, or to quarters of one up to 2 GB."""
    step = 1024 if megabytes > 2048 else 256
    return step * max(1, math.ceil(megabytes / step))


def limit_advice(summary: RunSummary, resources: Resources) -> Iterator[Advice]:
    """Yield advice if a shorter time limit is enough, or a longer one would save attempts.

    Raises UserError for an unknown notation.
    """
    minutes = parse_minutes(str(resources.get("time") or "UNLIMITED"))
    if minutes is None:
        return
    held = [attempt.time.end - attempt.time.begin for attempt in summary.attempt_usage]
    stopped = sum(attempt.why == "time_limit" for attempt in summary.attempts)
    if stopped:
        yield from _longer(summary, minutes, stopped)
    elif summary.state == "finished" and minutes > _LEAST_MINUTES:
        yield from _shorter(summary, minutes, max(held), sum(held) / len(held))


def _shorter(summary: RunSummary, minutes: int, longest_s: float, mean_s: float) -> Iterator[Advice]:
    enough = _rounded(longest_s * _ROOM / 60)
    if longest_s > LEAST_USED * minutes * 60 or enough >= minutes:
        return
    waited = formats.duration(summary.goodput.waiting)
    yield Advice(
        topic="time limit",
        found=f"the longest attempt took {formats.duration(longest_s)}, the mean {formats.duration(mean_s)}",
        bound=f"{100 * LEAST_USED:.0f} % of {format_minutes(minutes)}",
        change=f"resources.time={format_minutes(enough)}",
        reason=f"A short job fits into gaps of the queue and starts sooner; this run waited {waited}.",
    )


def _longer(summary: RunSummary, minutes: int, stopped: int) -> Iterator[Advice]:
    spent = summary.goodput
    if spent.starting <= MOST_STARTING * spent.allocated:
        return
    taken = formats.share(spent.starting, spent.allocated)
    yield Advice(
        topic="time limit",
        found=f"{stopped} attempts reached it; starting took {taken}",
        bound=f"{100 * MOST_STARTING:.0f} % of the time held",
        change=f"resources.time={format_minutes(2 * minutes)}",
        reason="There will be fewer attempts, if the partition allows such a long job.",
    )


def _rounded(minutes: float) -> int:
    """Round minutes up to multiples of 5, of 15 above an hour, of 60 above four hours."""
    step = 5 if minutes <= 60 else 15 if minutes <= 240 else 60
    return step * max(1, -(-int(minutes + 0.999) // step))
