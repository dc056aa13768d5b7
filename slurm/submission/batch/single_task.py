"""Resources of a job of one task on one host, derived from those of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slurm.client.hostlist import names_several
from slurm.config.resources import Resources

#: Options of `resources.sbatch` that request GPUs, in both spellings.
_GPU_OPTIONS = ("gpus", "gpus-per-socket", "gpus_per_socket")


def single_task(resources: Resources, **changes: Any) -> Resources:
    """Return resources for one task on one host, with these changes."""
    own: dict[str, Any] = {"nodes": 1, "tasks_per_node": 1, "world_size": None, "groups": (), "hosts": {}}
    if names_several(resources.nodelist):
        # A job gets all hosts of its list, but this job needs only one.
        own["nodelist"] = None
    return replace(resources, max_parallel=None, **{**own, **changes})


def without_gpus(resources: Resources) -> dict[str, Any]:
    """Return changes that request no GPU: gpu:a100:2,tmpdisk:10 -> tmpdisk:10."""
    kept = [each for each in (resources.gres or "").split(",") if each and not _is_gpu(each)]
    nothing = dict.fromkeys(("gpus_per_node", "gpus_per_task", "mem_per_gpu"))
    dropped = (*_GPU_OPTIONS, "cpus-per-gpu", "cpus_per_gpu")
    options = {name: value for name, value in resources.sbatch.items() if name not in dropped}
    return {**nothing, "gres": ",".join(kept) or None, "sbatch": options}


def with_one_gpu(resources: Resources) -> dict[str, Any]:
    """Return changes that request one GPU if any are requested: gpu:a100:4,disk:9 -> gpu:a100:1,disk:9."""
    changes: dict[str, Any] = {}
    if resources.groups or resources.hosts:
        gpus = max([*resources.hosts.values(), *(group.gpus for group in resources.groups)])
        changes["gres"] = "gpu:1" if gpus else resources.gres
    elif resources.gres is not None:
        parts = resources.gres.split(",")
        changes["gres"] = ",".join(_one_gpu(each) if _is_gpu(each) else each for each in parts)
    for name in ("gpus_per_node", "gpus_per_task"):
        if (asked := getattr(resources, name)) is not None:
            changes[name] = _one_gpu(asked)
    # Null and false remove an option.
    if wanted := [resources.sbatch[name] for name in _GPU_OPTIONS if resources.sbatch.get(name)]:
        others = {name: value for name, value in resources.sbatch.items() if name not in _GPU_OPTIONS}
        changes["sbatch"] = {**others, "gpus": _one_gpu(str(wanted[0]))}
    return changes


def _is_gpu(gres: str) -> bool:
    return gres.split(":")[0] == "gpu"


def _one_gpu(gpus: str) -> str:
    """Return a request for one of these GPUs: gpu:a100:4 -> gpu:a100:1, a100:4,v100:2 -> a100:1, 4 -> 1."""
    first, _, _ = gpus.partition(",")
    kind, colon, count = first.rpartition(":")
    return f"{kind}{colon}{min(int(count), 1)}" if count.isdecimal() else first
