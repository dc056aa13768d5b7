"""Processes of earlier attempts that outlived their rank."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from toolkit.run.fence import is_fenced
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import environments


def end_earlier_processes(run: RunDir) -> None:
    """Kill the processes on this host that an earlier attempt has left, before they write beside this one.

    If a rank is killed, its command gets SIGTERM, but not what a shell or another wrapper has started. Not
    for an attempt in a job: there the scheduler ends all processes, and jobs that the command has submitted
    inherit its variables.
    """
    for pid, environ in environments():
        if environ.get("STK_RUN_DIR") == str(run.path) and is_fenced(run, environ.get("STK_NONCE", "")):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
