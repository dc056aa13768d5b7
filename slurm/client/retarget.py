"""Change the dependencies of waiting jobs if a run continues in a new job."""

from __future__ import annotations

import os
import re

from slurm.client import programs
from toolkit.errors import SlurmRefused


def move_dependants(old: str, new: str) -> list[str]:
    """Let all jobs of the user that wait for the job `old` wait for `new`; return their ids. Idempotent.

    Also changes dependencies that a user's script has made. Raises SchedulerError.
    """
    waiting = programs.dependencies(str(os.getuid()))
    found = {
        job_id: words
        for job_id, words in waiting.items()
        # The components of a heterogeneous job `new` would wait for their own job.
        if job_id.partition("+")[0] != new and re.search(_pattern(old), words)
    }
    refusals = []
    for job_id, words in found.items():
        try:
            programs.depend_on(job_id, renamed(words, old, new))
        except SlurmRefused as refusal:
            # The job may have ended; change the other jobs nevertheless.
            refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return list(found)


def renamed(words: str, old: str, new: str) -> str:
    """Return a dependency in which `new` replaces `old`: afterok:12:13?after:12+5 -> afterok:14:13?…"""
    return re.sub(_pattern(old), new, words)


def _pattern(job_id: str) -> str:
    """Return a pattern of the whole id: after a colon, not as part of a longer id or of an array task's."""
    return rf"(?<=:){re.escape(job_id)}(?![\d_])"
