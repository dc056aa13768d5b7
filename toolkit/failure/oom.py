"""Whether the kernel has ended a process of this host for want of memory."""

from __future__ import annotations

from pathlib import Path


def oom_kills(vmstat: Path = Path("/proc/vmstat")) -> int | None:
    """How many processes the kernel of this host has ended for that since it started; None where unknown.

    Those of control groups count, too (Documentation/admin-guide/cgroup-v2, and mm/oom_kill.c, which
    counts OOM_KILL for both).
    """
    try:
        lines = vmstat.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
