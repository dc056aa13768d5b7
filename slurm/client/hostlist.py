"""Expand Slurm's compressed lists of hosts, `rack[1-2]node[01-04],login1`, and of counts, `2(x3),1`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from toolkit.errors import UserError

#: Slurm's own limit for one range.
MAX_RANGE = 65536

_VARIABLE = "SLURM_JOB_NODELIST"
_SEPARATORS = ", \t\n"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?", re.ASCII)


def expand(text: str) -> list[str]:
    """Return the host names of a host list, in order and with repetitions.

    Several brackets multiply; the first number of a range gives the width.
    Text after the last bracket is accepted, unlike in `scontrol show hostnames` 22.05.
    Raises UserError that names the position.
    """
    return [name for start, end in _entries(text) for name in _names(text, start, end)]


def of_job(environ: Mapping[str, str]) -> str:
    """Return the host list of this job, with all components of a heterogeneous job; empty outside of a job.

    The batch script of such a job has the first component in SLURM_JOB_NODELIST.
    """
    lists = [environ[name] for name in sorted(environ) if name.startswith(f"{_VARIABLE}_HET_GROUP_")]
    return ",".join(lists) or environ.get(_VARIABLE, "")


def expand_counts(text: str) -> list[int]:
    """Return the counts of a list such as SLURM_STEP_TASKS_PER_NODE: `2(x3),1` is 2, 2, 2, 1.

    Raises UserError that names the position.
    """
    counts: list[int] = []
    position = 0
    for part in text.split(","):
        match = _COUNT.fullmatch(part)
        if match is None:
            raise _fault(text, position, f"{part!r} is not a count such as 2 or 2(x3)", "list of counts")
        counts += [int(match[1])] * int(match[2] or 1)
        position += len(part) + 1
    return counts


def _entries(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each comma-separated entry; commas inside brackets do not separate."""
    start, opened = 0, -1
    for position, letter in enumerate(text):
        if letter == "[":
            if opened >= 0:
                raise _fault(text, position, "'[' inside brackets")
            opened = position
        elif letter == "]":
            if opened < 0:
                raise _fault(text, position, "']' without '['")
            opened = -1
        elif letter in _SEPARATORS and opened < 0:
            if position > start:
                yield start, position
            start = position + 1
    if opened >= 0:
        raise _fault(text, opened, "'[' is never closed")
    if start < len(text):
        yield start, len(text)


def _names(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the names of one entry: the product of its brackets."""
    fixed, brackets = [], []
    while (bracket := text.find("[", start, end)) >= 0:
        close = text.index("]", bracket)
        fixed.append(text[start:bracket])
        brackets.append(list(_numbers(text, bracket + 1, close)))
        start = close + 1
    tail = text[start:end]
    if not brackets:
        yield tail
        return
    # Slurm's order (measured): the last bracket runs fastest, then the first, the second, and so on.
    *outer, last = brackets
    for *slow, fast in itertools.product(*reversed(outer), last):
        numbers = (*reversed(slow), fast)
        yield "".join(map("".join, zip(fixed, numbers, strict=True))) + tail


def _numbers(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the numbers inside a pair of brackets, zero-padded."""
    for part in text[start:end].split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise _fault(text, start, f"{part!r} is not a number or a range such as 01-04")
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low):
            raise _fault(text, start, f"range {part} runs backwards")
        if int(high) - int(low) >= MAX_RANGE:
            raise _fault(text, start, f"range {part} has more than {MAX_RANGE} hosts")
        for number in range(int(low), int(high) + 1):
            yield str(number).zfill(len(low))
        start += len(part) + 1


def _fault(text: str, position: int, problem: str, kind: str = "host list") -> UserError:
    return UserError(f"{kind} {text!r}, character {position + 1}: {problem}")


def names_several(nodelist: str | None) -> bool:
    """Whether a node list names more than one host; False for a file of hosts and an invalid list."""
    try:
        return nodelist is not None and "/" not in nodelist and len(expand(nodelist)) > 1
    except UserError:
        # sbatch reports the fault.
        return False
