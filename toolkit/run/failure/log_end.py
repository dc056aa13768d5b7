"""Find at the end of a log why its process ended outside of Python.

A watchdog thread of torch aborts the process when an NCCL collective fails, before any exception reaches the
program. Its message is in the log. A segmentation fault is known by its signal, else by the log.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.files import read_end
from toolkit.run.failure.classes import CAUSES, SEGFAULT, class_by_words
from toolkit.run.run_dir import RunDir

_TAIL_BYTES = 1 << 17
_LONGEST = 300
#: Messages of the C++ runtime, of Python's faulthandler, and of torch before it ends the process.
_SIGNS = (
    "terminate called",
    "Fatal Python error: Aborted",
    "taking the entire process down",
    "Terminating the process",
)
#: Of faulthandler. A later line of the toolkit's log shows that the process went on: it was of a child.
_SEGFAULT = re.compile(r"Fatal Python error: Segmentation fault(?!.*\n\d{4}-\d\d-\d\d )", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """A failure class, and the line of the log that shows it; empty without one."""

    kind: str
    line: str


def last_words(log: Path, code: int | None = None) -> LastWords | None:
    """Why the process ended; None if there was neither an abort with its cause nor a segmentation fault.

    code   its exit status, as Popen reports it, if known: the fault in the log may be of a child
    """
    text = read_end(log, _TAIL_BYTES).decode("utf-8", "replace")
    if any(sign in text for sign in _SIGNS) and (found := class_by_words(text)) is not None:
        kind, words = found
        line = next(line for line in text.splitlines() if words in line)
        return LastWords(kind=kind, line=line.strip()[:_LONGEST])
    segfault = _SEGFAULT.search(text)
    is_fault = segfault is not None if code is None or code >= 0 else code == -signal.SIGSEGV
    return LastWords(kind=SEGFAULT, line=segfault[0] if segfault else "") if is_fault else None


def first_cause(run: RunDir, nonce: str, codes: Mapping[int, int | None]) -> tuple[int, LastWords] | None:
    """The rank with the cause in its log, else one with a consequence; None if none is known.

    codes   the exit statuses of the ranks to look at; None if unknown
    """
    ends = {rank: last_words(run.log(nonce, rank), code) for rank, code in codes.items()}
    found = {rank: words for rank, words in ends.items() if words is not None}
    rank = min(found, key=lambda rank: (CAUSES.index(found[rank].kind), rank), default=None)
    return None if rank is None else (rank, found[rank])
