"""Slurm's messages in a job's log about tasks that ran out of memory. It needs no accounting."""

from __future__ import annotations

import re
from pathlib import Path

from slurm.client.hostlist import expand
from toolkit.errors import StkError
from toolkit.files import read_end
from toolkit.run.attempts.crash_record import CrashHint
from toolkit.run.failure.classes import OOM_KILLED

#: Bytes from the end of a log, which hold the messages about an attempt.
_TAIL_BYTES = 1 << 16

#: What `slurm.job.decide_restart` begins its last word about an attempt with.
_LAST_WORD = "\nstk: "

_TASKS = re.compile(r"srun: error: .*: tasks? ([\d,-]+): Out Of Memory")
_STEP = re.compile(r"[Dd]etected \d+ oom[-_ ]kill event|[Ee]xceeded (?:job |step )?memory limit")


def crash_hint(log: Path) -> CrashHint:
    """Return what a job's log reports of ranks that died without a message: whether memory ran out."""
    text = read_end(log, _TAIL_BYTES).decode("utf-8", "replace")
    text = text.rpartition(_LAST_WORD)[2]
    if (tasks := _TASKS.search(text)) is not None:
        return CrashHint(kind=OOM_KILLED, rank=_first(tasks[1]))
    return CrashHint(kind=OOM_KILLED) if _STEP.search(text) else CrashHint()


def _first(tasks: str) -> int | None:
    try:
        return min(int(name) for name in expand(f"[{tasks}]"))
    except (StkError, ValueError):
        return None
