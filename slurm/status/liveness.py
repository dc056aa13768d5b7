"""Evidence that a run is live: its lock, its launcher, its heartbeat."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from slurm.status.submissions import Submission
from toolkit.files import regular
from toolkit.run.attempts.records import AttemptRecord
from toolkit.run.failure.records import last_heartbeat
from toolkit.run.run_dir import RunDir
from toolkit.system.host import is_here
from toolkit.system.output.sanitize import number

#: Seconds without a heartbeat until a rank counts as silent. Heartbeats come at least every 15 s, and another
#: host may see them a minute late on a network file system. If one is further in the future, clocks differ.
SILENCE_S = 120.0


def is_training_here(run: RunDir) -> bool:
    """Whether a rank 0 holds the run's lock, as far as this host's file system shows."""
    try:
        descriptor = regular(str(run.alive), os.O_RDONLY)
    except OSError:
        return False
    try:
        # A shared lock, so that readers do not disturb each other and need no write permission.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def is_launcher_alive(run: RunDir, submission: Submission) -> bool:
    """Whether the launcher of a local submission lives; False on any other host.

    The recorded process counts only if its command line is that of a launcher of this run: its number may
    have been reused, and a user with write access to the folder may have written any number.
    """
    if not is_here(submission.host, submission.boot):
        return False
    import psutil  # slow to import, and only local runs need it

    try:
        process = psutil.Process(submission.pid)
        # The words of a launcher from `slurm.submission.submit`, also of one that waits for another run. Its
        # time of creation does not count: psutil adds that of the boot, which changes with the clock.
        folders = (place for word, place in pairwise(process.cmdline()) if word == "toolkit.launch")
        # The folder may be a link.
        is_launcher = os.path.realpath(run.path) in map(os.path.realpath, folders)
        return is_launcher and bool(process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, ValueError):
        return False


def works_for(work_dir: str, job_id: str, run: RunDir) -> bool:
    """Whether a job with this working directory works in the run's folder."""
    return os.path.realpath(run.path) in map(os.path.realpath, _folders(work_dir, job_id))


def is_of_another(submission: Submission, work_dir: str, name: str, run: RunDir) -> bool:
    """Whether the job with this directory and name only has the number of a run's job.

    A controller may have begun its numbers again, or the folder may be a copy of the job's. If the folder was
    moved while its job waits or runs, the job has its name, and no run is in the job's directory. Accounting
    tells only the name.
    """
    if submission.is_script:
        return False
    if not work_dir:
        return name not in ("", submission.name)
    if works_for(work_dir, submission.job_id, run):
        return False
    others = [_inode(RunDir(Path(place))) for place in _folders(work_dir, submission.job_id)]
    return name != submission.name or any(other not in (None, _inode(run)) for other in others)


def _folders(work_dir: str, job_id: str) -> list[str]:
    """Return where a job's run may be: in its directory; for an array task, by a link with its number."""
    return [work_dir, os.path.join(work_dir, job_id.partition("_")[2])]


def _inode(run: RunDir) -> int | None:
    """Return the inode of a run's record, also if its folder is mounted at two places; None without one."""
    with suppress(OSError):
        return run.submissions.stat().st_ino
    return None


def heartbeat(run: RunDir, attempt: AttemptRecord | None) -> dict[str, Any]:
    """Return the last heartbeat of rank 0 of an attempt; empty without one.

    Its time is the earlier of the rank's clock and the file server's, because a clock may be ahead.
    """
    if attempt is None or not attempt.nonce:
        return {}
    found = last_heartbeat(run, attempt.nonce, 0)
    beat = number(found.get("time"))
    with suppress(OSError):
        if beat is not None:
            return {**found, "time": min(beat, run.heartbeat(attempt.nonce, 0).stat().st_mtime)}
    return {}


def silent_s(sign: Mapping[str, Any]) -> float:
    """Return the seconds since a heartbeat; negative if this host's clock is behind."""
    return time.time() - float(sign["time"])
