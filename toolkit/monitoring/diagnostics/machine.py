"""Resources of a process on this machine: processors, memory, limits, network interfaces."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from toolkit.system.cgroups import cpu_quota, memory_limit_mb, words_of

_MB = 1 << 20


def machine() -> dict[str, Any]:
    """Facts of this machine as JSON; None for what cannot be read. Memory in MB of 2**20 bytes."""
    memory, limit_mb = psutil.virtual_memory(), memory_limit_mb()
    return {
        "host": socket.gethostname(),
        "time": time.time(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "cpus": {
            "usable": len(os.sched_getaffinity(0)),
            "online": os.cpu_count(),
            "quota": cpu_quota(),
            "model": _cpu_model(),
        },
        "memory": {
            "total_mb": memory.total // _MB,
            "available_mb": memory.available // _MB,
            "limit_mb": None if limit_mb is None else int(limit_mb),
        },
        "shared_memory_mb": _size_mb("/dev/shm"),
        "limits": {
            "open_files": _limit(resource.RLIMIT_NOFILE),
            "processes": _limit(resource.RLIMIT_NPROC),
            "locked_memory_kb": _limit(resource.RLIMIT_MEMLOCK, 1024),
        },
        "network": network(),
    }


def _cpu_model() -> str | None:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return None


def _size_mb(path: str) -> int | None:
    with suppress(OSError):
        return shutil.disk_usage(path).total // _MB
    return None


def _limit(name: int, unit: int = 1) -> int | None:
    """The soft limit of this process; None for no limit."""
    soft = resource.getrlimit(name)[0]
    return None if soft == resource.RLIM_INFINITY else soft // unit


# -- network


def network() -> dict[str, Any]:
    """Interfaces with their addresses, the address of this machine's own name, and InfiniBand ports."""
    name = socket.gethostname()
    address: str | None = None
    with suppress(OSError):
        address = socket.gethostbyname(name)
    return {
        "interfaces": _interfaces(),
        "own_address": address,
        "infiniband": _infiniband(),
        "socket_ifname": {
            variable: os.environ[variable]
            for variable in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
            if os.environ.get(variable)
        },
    }


def _interfaces() -> list[dict[str, Any]]:
    """Interfaces that are up and have an IPv4 or IPv6 address."""
    states = psutil.net_if_stats()
    found = []
    for name, entries in psutil.net_if_addrs().items():
        addresses = [entry.address for entry in entries if entry.family in (socket.AF_INET, socket.AF_INET6)]
        if name in states and states[name].isup and addresses:
            found.append({"name": name, "addresses": addresses, "speed_mbps": states[name].speed or None})
    return found


def _infiniband(root: Path = Path("/sys/class/infiniband")) -> list[dict[str, str]]:
    ports = []
    with suppress(OSError):
        for port in sorted(root.glob("*/ports/*")):
            state = " ".join(words_of(port / "state")[1:])
            rate = " ".join(words_of(port / "rate"))
            ports.append({"name": f"{port.parts[-3]}:{port.name}", "state": state, "rate": rate})
    return ports
