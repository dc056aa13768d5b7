"""Processes of earlier attempts that outlived their rank."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from toolkit.run.fence import is_fenced
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import environments

_JOB = "SLURM_JOB_ID"


def end_earlier_processes(run: RunDir) -> None:
    """Kill the processes on this host that an earlier attempt has left, before they write beside this one.

    If a rank is killed, its command gets SIGTERM, but not what a shell or another wrapper has started. Jobs
    that a command has submitted inherit its variables, but not the number of its job.
    """
    job = os.environ.get(_JOB)
    for pid, environ in environments():
        is_of_run = environ.get("STK_RUN_DIR") == str(run.path) and environ.get(_JOB) == job
        if is_of_run and is_fenced(run, environ.get("STK_NONCE", "")):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
