"""The context of a failure, for its record: the GPU, the current batch and the memory in use."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import torch

from toolkit.system.cgroups import memory_limit_mb
from toolkit.system.output.amounts import size_mb

if TYPE_CHECKING:
    from toolkit.config.schema import Evaluation
    from toolkit.training.context import TrainContext

_MB = 1 << 20
#: Share of a GPU's memory above which the use by other processes is mentioned.
_OTHERS_SHARE = 0.1
#: Bytes that CUDA, NCCL and other libraries take for a process at most; torch does not count them.
_OF_LIBRARIES = 1 << 30


def failure_context(
    context: TrainContext | None, device: torch.device | None, gpu: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the current GPU, batch and memory, without those that cannot be queried. Never raises.

    gpu  the result of `describe_gpu`, called before the failure
    """
    parts: dict[str, Callable[[], Mapping[str, Any]]] = {
        "gpu": lambda: gpu,
        "batch": lambda: batch_at_work(context),
        "memory": lambda: _memory(device),
    }
    found: dict[str, Any] = {}
    for name, look in parts.items():
        # A device that has failed does not answer.
        with suppress(Exception):
            if facts := dict(look()):
                found[name] = facts
    return found


def describe_gpu(device: torch.device, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Number, name and UUID of a GPU; empty for any other device, or if it does not answer."""
    if device.type != "cuda":
        return {}
    index = device.index or 0
    found: dict[str, Any] = {"index": _number_on_host(index, environ)}
    with suppress(Exception):
        known = torch.cuda.get_device_properties(index)
        found["name"] = known.name
        # Missing in some versions of torch.
        found["uuid"] = f"GPU-{known.uuid}"
    return found


def _number_on_host(index: int, environ: Mapping[str, str]) -> int:
    """The number of a GPU on the host; CUDA numbers only the visible ones."""
    visible = environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return int(visible[index]) if index < len(visible) and visible[index].strip().isdecimal() else index


def batch_at_work(context: TrainContext | None) -> dict[str, Any]:
    """The size of the current micro-batch in samples and tokens; empty without one."""
    if context is None or (samples := context.activity.batch) is None or len(samples) == 0:
        return {}
    lengths = context.task.splits["train"].lengths[samples]
    return {
        "samples": len(samples),
        "tokens": int(lengths.sum()),
        "longest": int(lengths.max()),
        "micro_batches": context.micro_batches,
    }


def _memory(device: torch.device | None) -> dict[str, Any]:
    """Memory in MB: this process now and at its peak, the host, the limit if there is one, and the GPU."""
    rss_mb = psutil.Process().memory_info().rss / _MB
    facts: dict[str, Any] = {
        "rss_mb": round(rss_mb, 1),
        # Linux counts in KB, and updates the peak late.
        "rss_peak_mb": round(max(rss_mb, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024), 1),
        "host_mb": round(psutil.virtual_memory().total / _MB, 1),
    }
    if (limit := memory_limit_mb()) is not None:
        facts["limit_mb"] = round(limit, 1)
    if device is not None and device.type == "cuda":
        with suppress(Exception):
            facts["gpu"] = _gpu_memory(device)
    return facts


def _gpu_memory(device: torch.device) -> dict[str, float]:
    free, total = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device)
    numbers = {
        "allocated_mb": torch.cuda.memory_allocated(device),
        "allocated_peak_mb": torch.cuda.max_memory_allocated(device),
        "reserved_mb": reserved,
        "free_mb": free,
        "total_mb": total,
        "others_mb": max(0, total - free - reserved - _OF_LIBRARIES),
    }
    return {name: round(value / _MB, 1) for name, value in numbers.items()}


def memory_advice(
    found: Mapping[str, Any], accumulation: int, evaluation: Evaluation | None = None, *, halved: bool = False
) -> str:
    """Return advice after memory ran out: on the GPU if the record has one, else on the host.

    evaluation   the evaluation section, if memory ran out in an evaluation
    halved       whether the run computes in bf16 or fp16 already
    """
    batch, memory = found.get("batch", {}), found.get("memory", {})
    what = f"The micro-batch of {batch['samples']:,} samples did not fit: " if batch else ""
    halve = f"train.accumulation={2 * accumulation} needs less for each micro-batch (that makes another run)"
    if evaluation is not None:
        name = "batch_size" if evaluation.batch_size else "batch_max_length"
        less = max(1, getattr(evaluation, name) // 2)
        halve = f"evaluation.{name}={less} needs less for each batch (that makes another run)"
    if (gpu := memory.get("gpu")) is not None:
        precision = "" if halved else ", as does train.precision=bf16"
        return f"{what}{halve}{precision}; or use a GPU with more memory.{_others(gpu)}"
    limit = f", which is {size_mb(memory['limit_mb'])} now" if "limit_mb" in memory else ""
    return f"{what}{halve}; or ask for more memory (resources.mem){limit}."


def _others(gpu: Mapping[str, float]) -> str:
    """Return a sentence on the memory that other processes use, if it is more than _OTHERS_SHARE."""
    if gpu["others_mb"] <= _OTHERS_SHARE * gpu["total_mb"]:
        return ""
    return f" Other processes use {size_mb(gpu['others_mb'])} of this GPU."
