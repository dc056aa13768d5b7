"""Why a command failed: its exit status, and the end of its output."""

from __future__ import annotations

import re
import signal
import socket
from dataclasses import dataclass
from typing import Any

from toolkit.run.failure.classes import KILLED, OUT_OF_MEMORY, PEER_LOST, class_by_words
from toolkit.run.failure.records import failure_record
from toolkit.run.phases import Phase
from toolkit.system.world import World

_SHOWN_LINES = 30
#: Prefixes of a traceback's lines: torch's, once a process has joined a group, and those of exception groups.
_PREFIX = re.compile(r"^\[rank\d+\]: ?|^  [+|] (?:Exception Group (?=Traceback))?", re.MULTILINE)
#: Before each traceback; of several, as for an error while another is handled, the last one ends the program.
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE)
#: The first line behind a traceback's indented ones: the name of the exception and its message.
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?:: ?(.*))?$", re.MULTILINE)
#: Exceptions of a launcher whose process has failed: that one's own exception tells why.
_OF_LAUNCHERS = frozenset({"ChildFailedError", "CalledProcessError"})
#: Lines of a message, or at the end of output without a traceback, that may show the class.
_MESSAGE_LINES, _LAST_LINES = 10, 5
#: The class of what the user has to correct.
INPUT = "input"
_CLASSES = {
    "ModuleNotFoundError": "import",
    "ImportError": "import",
    "MemoryError": OUT_OF_MEMORY,
    "OutOfMemoryError": OUT_OF_MEMORY,
    # Of our own (toolkit.errors), raised by what a script has called.
    "UserError": INPUT,
    "ConfigError": INPUT,
    "DataError": INPUT,
    "CheckpointError": "checkpoint",
}
#: Where the advice on a class is for a program of ours.
_ADVICE = {
    OUT_OF_MEMORY: "Request more memory, or let the program use less, for instance by smaller batches."
}
_BY_SIGNAL = "PYTHONFAULTHANDLER=1 in resources.environment lets Python show where a signal came."


def failure_of(world: World, code: int, output: str, step: int | None) -> dict[str, Any]:
    """The record of a command that ended with a failing status, or of a function that did not return.

    output   the end of what it has written
    step     the last one that it has logged; None where it logs none
    """
    output = _PREFIX.sub("", output)
    lines = [line for line in output.splitlines() if line.strip()]
    kind, shown = _class(code, output, lines)
    message = _how(code) + (f": {shown}" if shown else "")
    record = failure_record(
        world.nonce,
        kind,
        message,
        rank=world.rank,
        host=socket.gethostname(),
        phase=Phase.PROGRAM,
        step=step,
        trace="\n".join(lines[-_SHOWN_LINES:]),
    )
    advice = _ADVICE.get(kind, record["advice"])
    if kind == "exception" and not _TRACEBACK.search(output):
        advice = (
            f"The log has no traceback: see its last lines. {_BY_SIGNAL if _signal(code) else ''}".rstrip()
        )
    return {**record, "advice": advice}


def _class(code: int, text: str, lines: list[str]) -> tuple[str, str]:
    """The failure class, and the line that shows it."""
    parts = [] if code < 0 else _TRACEBACK.split(text)[1:]
    raised = [each for each in map(_raised, parts) if each is not None]
    # One that many lines follow was handled.
    if raised and raised[-1].lines_below <= _SHOWN_LINES:
        last = raised[-1]
        if last.name in _OF_LAUNCHERS:
            # Of several processes the first cause counts, before what the others say of its death.
            own = [each for each in raised if each.name not in _OF_LAUNCHERS] or [last]
            last = next((each for each in own if each.kind != PEER_LOST), own[0])
        return last.kind, last.line
    # An abort outside of Python names its cause long before its end.
    told = lines if _signal(code) == signal.SIGABRT else lines[-_LAST_LINES:]
    if (found := class_by_words("\n".join(told))) is not None:
        kind, words = found
        return kind, next(line.strip() for line in told if words in line)
    if _signal(code) == signal.SIGKILL:
        return KILLED, ""
    shown = lines[-1].strip() if lines else ""
    name = _EXCEPTION.match(shown)
    return _CLASSES.get(name[1], "exception") if name else "exception", shown


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raised:
    """An exception that a traceback ends with: its name, its class of failure, its first line."""

    name: str
    kind: str
    line: str
    lines_below: int


def _raised(text: str) -> _Raised | None:
    """The exception behind the beginning of a traceback; None where the output ends before it."""
    if (found := _EXCEPTION.search(text)) is None:
        return None
    name, said = found[1], found[2]
    message = text[found.start() :].splitlines()
    by_words = class_by_words("\n".join(message[:_MESSAGE_LINES]))
    kind = _CLASSES.get(name, "exception") if by_words is None else by_words[0]
    line = f"{name}: {said}" if said else name
    return _Raised(name=name, kind=kind, line=line, lines_below=len(message))


def _signal(code: int) -> int:
    """The signal in a status, as Popen or as a shell reports it; 0 for none."""
    return -code if code < 0 else max(0, code - 128)


def _how(code: int) -> str:
    if code < 0:
        # A real-time signal has no name.
        named = (each.name for each in signal.Signals if each == -code)
        return f"the command was ended by {next(named, f'signal {-code}')}"
    if code == 0:
        return "the function ended the process without returning"
    return f"the command ended with status {code}"
