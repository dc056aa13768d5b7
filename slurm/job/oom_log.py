"""Slurm's messages in a job's log about tasks that ran out of memory. It needs no accounting."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from slurm.client.hostlist import expand
from toolkit.errors import StkError
from toolkit.files import read_end

#: Bytes from the end of a log: what is said of a start stands there.
_TAIL_BYTES = 1 << 16

#: What `slurm.job.decide_restart` begins its last word about a start with.
_LAST_WORD = "\nstk: "

_TASKS = re.compile(r"srun: error: .*: tasks? ([\d,-]+): Out Of Memory")
_STEP = re.compile(r"[Dd]etected \d+ oom[-_ ]kill event|[Ee]xceeded (?:job |step )?memory limit")


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The kernel killed tasks of a step because memory ran out; the first of them, if srun names it."""

    task: int | None = None


def out_of_memory(log: Path) -> OutOfMemory | None:
    """Whether a job's log says that its last step ran out of memory; None where it does not."""
    text = read_end(log, _TAIL_BYTES).decode("utf-8", "replace")
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
