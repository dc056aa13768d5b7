"""A run's request to the scheduler, in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurm.client.quantities import gres_of_request, parse_mb, parse_minutes
from slurm.config.resources import CPUS_BESIDE_A_GPU
from toolkit.monitoring.usage.values import RankUsage

#: The section `resources` as it stands in job.yaml: runs older than a key lack it.
Resources = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMemory:
    """Memory of one host: megabytes, the key that asks for it, and how many units of the key that is."""

    megabytes: int
    key: str
    units: int


def asked_minutes(resources: Resources) -> int | None:
    """Return the time limit in minutes; None where none was asked for."""
    limit = resources.get("time")
    return parse_minutes(str(limit)) if limit else None


def asked_cpus(resources: Resources) -> int:
    """Return the CPUs of each rank: those of the plan where nothing is asked for."""
    return int(resources.get("cpus_per_task") or (CPUS_BESIDE_A_GPU if asks_for_gpus(resources) else 1))


def asked_memory(resources: Resources, ranks: Sequence[RankUsage]) -> AskedMemory | None:
    """Return the memory of a host with these ranks; None where nothing definite was asked for.

    Raises UserError for an amount in no known notation.
    """
    gpus = len({rank.gpu.uuid for rank in ranks if rank.gpu})
    known = (("mem", 1), ("mem_per_cpu", len(ranks) * asked_cpus(resources)), ("mem_per_gpu", gpus))
    for key, units in known:
        text = resources.get(key)
        if text and units and (megabytes := units * parse_mb(str(text))):
            return AskedMemory(megabytes=megabytes, key=f"resources.{key}", units=units)
    return None


def asks_for_gpus(resources: Resources) -> bool:
    """Whether any GPU was requested, in any way."""
    gres = gres_of_request(str(resources.get("gres") or ""))
    in_groups = any(group.get("gpus") for group in resources.get("groups") or ())
    return bool(
        any(name == "gpu" for name, _ in gres)
        or resources.get("gpus_per_node")
        or resources.get("gpus_per_task")
        or in_groups
        or any((resources.get("hosts") or {}).values())
    )
