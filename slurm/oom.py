"""What Slurm says in a job's log of tasks that ran out of memory; no accounting is needed for that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from slurm.hostlist import expand
from toolkit.errors import StkError

#: Bytes from the end of a log: what is said of a start stands there.
_TAIL = 1 << 16

#: What `slurm.after_step` begins its last word about a start with.
_LAST_WORD = "\nstk: "

_TASKS = re.compile(r"srun: error: .*: tasks? ([\d,-]+): Out Of Memory")
_STEP = re.compile(r"[Dd]etected \d+ oom[-_ ]kill event|[Ee]xceeded (?:job |step )?memory limit")


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """That the kernel ended tasks of a step for want of memory, and the first of them, where srun says so."""

    task: int | None = None


def out_of_memory(log: Path) -> OutOfMemory | None:
    """What a job's log says of its last step; None where it says no such thing."""
    try:
        with open(log, "rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return None
    text = text.rpartition(_LAST_WORD)[2]
    tasks = _TASKS.search(text)
    if tasks is None:
        return OutOfMemory() if _STEP.search(text) else None
    return OutOfMemory(_first(tasks[1]))


def _first(tasks: str) -> int | None:
    try:
        return min(int(name) for name in expand(f"[{tasks}]"))
    except (StkError, ValueError):
        return None
