"""End what the ranks of this machine have started and could not end, because they were killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

from toolkit.files import read_object
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import environments


def end_leftovers(run: RunDir, nonce: str, ranks: Iterable[int]) -> None:
    """Kill the process groups that these ranks have started. Call it when the ranks have ended.

    A rank that has ended its own group in order has no process id in its record. A group in which no process
    has the attempt's name in its environment is another one, which got the same id later.
    """
    records = [read_object(run.process(nonce, rank)) for rank in ranks]
    groups = {each["pid"] for each in records if "pid" in each}
    if not groups:
        return
    for pid, environ in environments():
        with suppress(OSError):
            if environ.get("STK_NONCE") == nonce and (group := os.getpgid(pid)) in groups:
                os.killpg(group, signal.SIGKILL)
