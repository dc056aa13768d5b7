"""The limits of this process's control groups: memory and cores, in both versions of cgroups.

`man 7 cgroups` describes their files. A group's limit applies to all groups within it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

_OWN, _MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_MB = 1 << 20


def memory_limit_mb(own: Path = _OWN, mounted: Path = _MOUNTED) -> float | None:
    """Return the lowest memory limit in MB; None without a limit."""
    least = _lowest(_memory, own, mounted)
    # Version 1 writes a number larger than the memory if there is no limit.
    return None if least is None or least >= psutil.virtual_memory().total else least / _MB


def cpu_quota(own: Path = _OWN, mounted: Path = _MOUNTED) -> float | None:
    """Return the lowest CPU quota, in cores; None without a limit."""
    return _lowest(_cores, own, mounted)


def _lowest(read: Callable[[Path], float | None], own: Path, mounted: Path) -> float | None:
    found = [value for folder in _folders(own, mounted) if (value := read(folder)) is not None]
    return min(found, default=None)


def _folders(own: Path, mounted: Path) -> list[Path]:
    """The folders of this process's groups and of their parent groups."""
    folders: list[Path] = []
    with suppress(OSError):
        for line in own.read_text().splitlines():
            parts = line.split(":", 2)
            if len(parts) < 3:
                continue
            # Version 1 has a tree for each kind of limit.
            for kind in parts[1].split(","):
                top = mounted / kind
                inner = top / parts[2].lstrip("/")
                folders += [each for each in (inner, *inner.parents) if each.is_relative_to(top)]
    return folders


def _memory(group: Path) -> float | None:
    words = words_of(group / "memory.max") or words_of(group / "memory.limit_in_bytes")
    return int(words[0]) if words and words[0].isdecimal() else None


def _cores(group: Path) -> float | None:
    first_version = [*words_of(group / "cpu.cfs_quota_us"), *words_of(group / "cpu.cfs_period_us")]
    words = words_of(group / "cpu.max") or first_version
    if len(words) != 2 or not all(word.isdecimal() for word in words) or words[1] == "0":
        return None
    return int(words[0]) / int(words[1])


def words_of(path: Path) -> list[str]:
    """The words of a file of the kernel; none if it does not exist."""
    with suppress(OSError):
        return path.read_text().split()
    return []
