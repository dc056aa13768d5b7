"""Jobs that wait for another one: when a run goes on in a new job, they wait for that."""

from __future__ import annotations

import os
import re

from slurm.client import programs
from toolkit.errors import SlurmRefused


def move_dependants(old: str, new: str) -> list[str]:
    """Let the user's jobs that wait for the job `old` wait for `new`; return their ids. May be done twice.

    It does not matter whether this project or a user's script made them depend. Raises SchedulerError.
    """
    waiting = programs.dependencies(str(os.getuid()))
    found = {
        job_id: words
        for job_id, words in waiting.items()
        # The parts of an uneven job each wait for the old one: changed, they would wait for each other.
        if job_id.partition("+")[0] != new and re.search(_pattern(old), words)
    }
    refusals = []
    for job_id, words in found.items():
        try:
            programs.depend_on(job_id, renamed(words, old, new))
        except SlurmRefused as refusal:
            # It may have ended meanwhile; the others must be moved all the same.
            refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return list(found)


def renamed(words: str, old: str, new: str) -> str:
    """A dependency with another job's id in place of one: afterok:12:13?after:12+5 -> afterok:14:13?…"""
    return re.sub(_pattern(old), new, words)


def _pattern(job_id: str) -> str:
    """The id as a whole: behind a colon, and neither the beginning of a longer one nor an array's task."""
    return rf"(?<=:){re.escape(job_id)}(?![\d_])"
