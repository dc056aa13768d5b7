"""The machine, its load and the versions, to be published with the figures."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "lightning", "datasets", "numpy")


def describe() -> dict[str, Any]:
    """Return processor, memory, versions and the load of the last minute."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_gb": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "load": round(os.getloadavg()[0], 2),
    }


def busy(load: float, cores: int) -> str | None:
    """Return a warning if other work uses the machine; None if it is idle."""
    if load <= 0.25 * cores:
        return None
    return f"this machine is busy (load {load:.1f} on {cores} cores): the figures say little"


def sentence(machine: Mapping[str, Any]) -> str:
    """Return the description in one line."""
    packages = ", ".join(f"{name} {found}" for name, found in machine["packages"].items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}, "
        f"Python {machine['python']}, {packages}; load before {machine['load']}"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
