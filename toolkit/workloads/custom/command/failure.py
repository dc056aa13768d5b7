"""Why a command failed: its exit status, and the end of its output."""

from __future__ import annotations

import re
import signal
import socket
from typing import Any

from toolkit.run.failure.classes import KILLED, class_by_words
from toolkit.run.failure.records import failure_record
from toolkit.run.phases import Phase
from toolkit.system.world import World

_SHOWN_LINES = 30
#: Prefix that torch writes before each line of a traceback, once a process has joined a group.
_RANK = re.compile(r"^\[rank\d+\]: ?", re.MULTILINE)
#: A last line of a Python traceback: the name of the error and its message.
_ERROR = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Interrupt)): ?(.*)$", re.MULTILINE)
#: The class of what the user has to correct.
INPUT = "input"
_CLASSES = {
    "ModuleNotFoundError": "import",
    "ImportError": "import",
    "MemoryError": "out_of_memory",
    # Of our own (toolkit.errors), raised by what a script has called.
    "UserError": INPUT,
    "ConfigError": INPUT,
    "DataError": INPUT,
    "CheckpointError": "checkpoint",
}


def failure_of(world: World, code: int, output: str, step: int | None) -> dict[str, Any]:
    """The record of a command that ended with a failing status.

    output   the end of what it has written
    step     the last one that it has logged; None where it logs none
    """
    output = _RANK.sub("", output)
    lines = [line for line in output.splitlines() if line.strip()]
    kind, shown = _class(code, output, lines)
    message = f"the command {_how(code)}" + (f": {shown}" if shown else "")
    return failure_record(
        world.nonce,
        kind,
        message,
        rank=world.rank,
        host=socket.gethostname(),
        phase=Phase.PROGRAM,
        step=step,
        trace="\n".join(lines[-_SHOWN_LINES:]),
    )


def _class(code: int, text: str, lines: list[str]) -> tuple[str, str]:
    """The failure class, and the line that shows it."""
    if (found := class_by_words(text)) is not None:
        kind, words = found
        return kind, next(line.strip() for line in lines if words in line)
    errors = _ERROR.findall(text)
    if errors:
        name, said = errors[-1]
        return _CLASSES.get(name, "exception"), f"{name}: {said}"
    if _signal(code) == signal.SIGKILL:
        return KILLED, ""
    return "exception", lines[-1].strip() if lines else ""


def _signal(code: int) -> int:
    """The signal in a status, as Popen or as a shell reports it; 0 for none."""
    return -code if code < 0 else max(0, code - 128)


def _how(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"
