"""Whether the kernel has killed a process of this host because memory ran out."""

from __future__ import annotations

from pathlib import Path


def oom_kills(vmstat: Path = Path("/proc/vmstat")) -> int | None:
    """Number of processes that the kernel of this host has killed for memory since boot; None if unknown.

    Kills in control groups count, too (Documentation/admin-guide/cgroup-v2, and mm/oom_kill.c, which
    counts OOM_KILL for both).
    """
    try:
        lines = vmstat.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def ran_out_since(before: int | None) -> bool:
    """Whether memory has run out on this host since `oom_kills` returned this number."""
    return before is not None and (oom_kills() or 0) > before
