"""Processes of this machine: the start time of one, those of a group, those with a variable."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def process_start_time(pid: int | None = None) -> float:
    """When a process was created, this one or another, in seconds since 1970, to a hundredth.

    psutil adds the ticks since boot to the boot time, which Linux rounds down to the second: its start
    times are up to a second too early.
    Raises OSError for a process that is gone.
    """
    fields = Path(f"/proc/{pid or 'self'}/stat").read_text().rpartition(")")[2].split()
    since_boot_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s)


def group_lives(group: int) -> bool:
    """Whether a process of this process group is alive. One that has ended and is still listed is not."""
    import psutil

    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
        except (OSError, psutil.Error):
            continue
    return False


def ancestors() -> list[int]:
    """Return the processes that this one descends from, up to one that this user may not see."""
    import psutil

    found: list[int] = []
    with suppress(psutil.Error):
        process = psutil.Process().parent()
        while process is not None:
            found.append(process.pid)
            process = process.parent()
    return found


def environments() -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the processes of this user, with the environment in which each was started."""
    import psutil

    for process in psutil.process_iter():
        try:
            environ = process.environ()
        except (OSError, psutil.Error):
            continue
        yield process.pid, environ
