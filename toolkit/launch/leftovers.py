"""End the processes that killed ranks of this machine have left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Set
from contextlib import suppress

from toolkit.files import read_object
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import environments

#: Most seconds for a save between SIGTERM and SIGKILL.
_SAVE_S = 12.0
#: Seconds between two looks at all processes of the host.
_LOOK_S = 0.5


def end_leftovers(run: RunDir, nonce: str, ranks: Iterable[int], is_urgent: Callable[[], bool]) -> None:
    """End the process groups that these ranks have started. Call it when the ranks have ended.

    They get SIGTERM, and SIGKILL after some seconds, or as soon as it is urgent. A rank that has ended its
    own group in order has no process id in its record. A group in which no process has the attempt's name in
    its environment is another one, which got the same id later.
    """
    records = [read_object(run.process(nonce, rank)) for rank in ranks]
    groups = {each["pid"] for each in records if "pid" in each}
    if not groups:
        return
    # The kernel has sent SIGTERM to the first process of each group. A second SIGTERM may end its save.
    for pid in _members(nonce, groups).keys() - groups:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _SAVE_S
    while (left := _members(nonce, groups)) and not is_urgent() and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    for group in set(left.values()):
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def _members(nonce: str, groups: Set[int]) -> dict[int, int]:
    """The processes of these groups with the attempt's name in their environment, each with its group."""
    found = {}
    for pid, environ in environments():
        with suppress(OSError):
            if environ.get("STK_NONCE") == nonce and (group := os.getpgid(pid)) in groups:
                found[pid] = group
    return found
