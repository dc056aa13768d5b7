"""Find Slurm's out-of-memory messages in a job's log, without accounting."""

from __future__ import annotations

import re
from pathlib import Path

from slurm.client.hostlist import expand
from toolkit.errors import StkError
from toolkit.files import read_end
from toolkit.run.attempts.crash_record import CrashHint
from toolkit.run.failure.classes import OOM_KILLED

#: Number of bytes at the end of a log that are searched.
_TAIL_BYTES = 1 << 16

#: Beginning of the line that `slurm.job.decide_restart` prints after each attempt.
_LAST_LINE_START = "\nstk: "

_TASKS = re.compile(r"srun: error: .*: tasks? ([\d,-]+): Out Of Memory")
_STEP = re.compile(r"[Dd]etected \d+ oom[-_ ]kill event|[Ee]xceeded (?:job |step )?memory limit")


def crash_hint(log: Path) -> CrashHint:
    """Return whether a job's log shows an out-of-memory kill, for ranks that ended without a message."""
    text = read_end(log, _TAIL_BYTES).decode("utf-8", "replace")
    text = text.rpartition(_LAST_LINE_START)[2]
    if (tasks := _TASKS.search(text)) is not None:
        return CrashHint(kind=OOM_KILLED, rank=_first(tasks[1]))
    return CrashHint(kind=OOM_KILLED) if _STEP.search(text) else CrashHint()


def _first(tasks: str) -> int | None:
    try:
        return min(int(name) for name in expand(f"[{tasks}]"))
    except (StkError, ValueError):
        return None
