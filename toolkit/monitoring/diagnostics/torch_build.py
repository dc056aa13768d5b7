"""Version and capabilities of the installed torch. Imports torch, so it runs only in a child process."""

from __future__ import annotations

import importlib
import time
from contextlib import suppress
from typing import Any

from toolkit.system import idle_gpus


def torch_build() -> dict[str, Any]:
    """Version, CUDA, NCCL and gloo of torch, and the GPUs that it sees, as JSON."""
    began = time.monotonic()
    try:
        torch = importlib.import_module("torch")
    except Exception as error:
        return {"version": None, "why": f"{type(error).__name__}: {error}"}
    distributed = torch.distributed
    is_available = distributed.is_available()
    return {
        "version": str(torch.__version__),
        "import_s": round(time.monotonic() - began, 2),
        "cuda": torch.version.cuda,
        "nccl": _nccl(torch),
        "has_nccl": is_available and distributed.is_nccl_available(),
        "has_gloo": is_available and distributed.is_gloo_available(),
        "threads": torch.get_num_threads(),
        **_devices(torch),
    }


def _nccl(torch: Any) -> str | None:
    with suppress(Exception):  # a build without it has no such function
        return ".".join(map(str, torch.cuda.nccl.version()))
    return None


def _devices(torch: Any) -> dict[str, Any]:
    """The GPUs that torch sees, and those for which this build has no code."""
    if not torch.cuda.is_available():
        why = idle_gpus.why_none(torch) if torch.version.cuda else None
        return {"devices": [], "without_code": [], "why": why}
    count = torch.cuda.device_count()
    built_for = torch.cuda.get_arch_list()
    names = [torch.cuda.get_device_name(index) for index in range(count)]
    kinds = [torch.cuda.get_device_capability(index) for index in range(count)]
    lacking = [
        f"{name} (sm_{major}{minor})"
        for name, (major, minor) in zip(names, kinds, strict=True)
        if not _has_code(major, minor, built_for)
    ]
    return {"devices": names, "without_code": lacking, "why": None}


def _has_code(major: int, minor: int, built_for: list[str]) -> bool:
    """Whether a build for these kinds runs on a GPU: same family and not newer, or compiled at the start."""
    if not built_for:
        return True
    for entry in built_for:
        form, _, digits = entry.partition("_")
        digits = "".join(filter(str.isdecimal, digits))
        own = (int(digits[:-1]), int(digits[-1]))
        if own <= (major, minor) and (form == "compute" or own[0] == major):
            return True
    return False
