"""How long tests wait for what has to come."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import Any

#: Seconds; fewer than pytest allows a test. Nothing is measured with it: a busy machine may be slow, but a
#: hang has to end.
PATIENCE_S = 600.0


def until(condition: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> Any:
    """What a condition gives once it gives something; a process that ends before fails the test."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "this took too long"
        time.sleep(0.01)
    return value


def wait_for_the_end_of(pid: int) -> None:
    """Return when a process has ended, also one that another process started."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([handle], [], [], PATIENCE_S)
        assert ended, f"process {pid} does not end"
    finally:
        os.close(handle)
