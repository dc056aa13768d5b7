"""Find at the end of a log why its process ended outside of Python.

A watchdog thread of torch aborts the process when an NCCL collective fails, before any exception reaches the
program. Its message is in the log.
"""

from __future__ import annotations

import re
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
    """A failure class, and the line of the log that shows it."""

    kind: str
    line: str


def last_words(log: Path) -> LastWords | None:
    """Why the process ended; None if the log has neither an abort with its cause nor a segmentation fault."""
    text = read_end(log, _TAIL_BYTES).decode("utf-8", "replace")
    if any(sign in text for sign in _SIGNS) and (found := class_by_words(text)) is not None:
        kind, words = found
        line = next(line for line in text.splitlines() if words in line)
        return LastWords(kind=kind, line=line.strip()[:_LONGEST])
    segfault = _SEGFAULT.search(text)
    return LastWords(kind=SEGFAULT, line=segfault[0]) if segfault else None


def first_cause(run: RunDir, nonce: str, hosts: Mapping[int, str]) -> tuple[int, LastWords] | None:
    """The rank with the cause in its log, else one with a consequence; None if no log shows one."""
    found = {rank: words for rank in hosts if (words := last_words(run.log(nonce, rank))) is not None}
    rank = min(found, key=lambda rank: (CAUSES.index(found[rank].kind), rank), default=None)
    return None if rank is None else (rank, found[rank])
