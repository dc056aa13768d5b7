"""The start time of a process, more exact than psutil's."""

from __future__ import annotations

import os
import time
from pathlib import Path

_PROC = Path("/proc")


def process_start_time(pid: int | None = None) -> float:
    """When a process was created, this one or another, in seconds since 1970, to a hundredth.

    psutil adds the ticks since boot to the boot time, which Linux rounds down to the second: its start
    times are up to a second too early.
    Raises OSError or psutil.NoSuchProcess for a process that is gone.
    """
    if not _PROC.is_dir():
        import psutil

        return psutil.Process(pid).create_time()
    fields = (_PROC / str(pid or "self") / "stat").read_text().rpartition(")")[2].split()
    since_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s)
