"""Signs of life of a run: its lock, its launcher, its heartbeat."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from slurm.submissions import Submission
from toolkit.files import read_json
from toolkit.rundir import RunDir

#: Heartbeats come every 15 s or sooner; another host may see one a minute late over a network file system.
SILENCE_S = 120.0


def is_training_here(run: RunDir) -> bool:
    """Whether a rank 0 holds the run's lock, as far as this host's file system can tell."""
    try:
        descriptor = os.open(run.alive, os.O_RDONLY)
    except OSError:
        return False
    try:
        # Shared, so that two who look do not see each other, and may look who may not write.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def is_launcher_alive(submission: Submission) -> bool:
    """Whether the launcher of a local submission lives; only its own host can say so."""
    if submission.host != socket.gethostname():
        return False
    import psutil  # slow to import, and only local runs need it

    try:
        process = psutil.Process(submission.pid)
        # The number may belong to a younger process by now.
        return bool(process.create_time() <= submission.time + 1 and process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, ValueError):
        return False


def heartbeat(run: RunDir, start: Mapping[str, Any]) -> dict[str, Any]:
    """What rank 0 of a start last said of itself; empty where it never did."""
    if not isinstance(nonce := start.get("nonce"), str) or not nonce:
        return {}
    try:
        found = read_json(run.heartbeat(nonce, 0))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("time"), int | float) else {}


def silent_s(sign: Mapping[str, Any]) -> float:
    """Seconds since a heartbeat; hosts' clocks may differ, so never less than none."""
    return max(0.0, time.time() - float(sign["time"]))
