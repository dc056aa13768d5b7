"""Why a command failed: its exit status, and the end of its output."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from toolkit.run.failure.classes import (
    ADDRESS_IN_USE,
    COMMUNICATION,
    INPUT,
    IO,
    IO_ERRORS,
    KILLED,
    NO_ROOM,
    OOM_KILLED,
    OUT_OF_MEMORY,
    PEER_LOST,
    PORT_WORDS,
    class_by_words,
)
from toolkit.run.failure.records import failure_record
from toolkit.run.phases import Phase
from toolkit.system.output.sanitize import without_escapes
from toolkit.system.world import World

_SHOWN_LINES = 30
#: Prefixes of a traceback's lines: from torch in processes of a group, and from exception groups.
_PREFIX = re.compile(r"^\[rank\d+\]: ?|^  [+|] (?:Exception Group (?=Traceback))?", re.MULTILINE)
#: The first line of a traceback. The last one counts: earlier exceptions may have been handled.
#: A progress bar may stand before it in its line.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):$", re.MULTILINE)
#: In the first line of any traceback, also of one in a box by rich.
_PRINTED = "Traceback (most recent call last)"
#: The first line of a stack by faulthandler. Those of torch in C++ have the same words after other ones.
_STACK = re.compile(r"(^Stack |[Tt]hread 0x.*)\(most recent call first\):", re.MULTILINE)
#: The first line after the indented lines of a traceback: the exception's name and message.
_EXCEPTION = re.compile(r"^((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)(?:: ?(.*))?$", re.MULTILINE)
#: The errno of an OSError, also within the message of a library's own exception.
_ERRNO = re.compile(r"(?:\[Errno |(?:ConnectionReset|BrokenPipe)Error\()(-?\d+)[\],] ")
#: Errors of a disk or network after which a new attempt is made. A full disk, a refused connection and a
#: read-only file system do not pass by themselves.
_PASSING = IO_ERRORS - NO_ROOM - {errno.ECONNREFUSED, errno.EROFS}
_CLASSES_BY_ERRNO = {**dict.fromkeys(_PASSING, IO), socket.EAI_AGAIN: IO, errno.ENOMEM: OUT_OF_MEMORY}
#: In the error of torch's store about its port, which `stk` chooses. A port of the program's own stays taken.
_STORE = "server socket"
#: Exceptions by which a launcher reports that its process failed. The exception of that process says why.
_TORCHRUN = "ChildFailedError"
_OF_LAUNCHERS = frozenset({_TORCHRUN, "CalledProcessError"})
#: Classes of what a process reports about another one that has failed.
_OF_PEERS = frozenset({PEER_LOST, COMMUNICATION})
#: The end of torch's error about a worker of a DataLoader. The error before it may say why.
_WORKER_GONE = "exited unexpectedly"
#: Lines of a message, or at the end of output without a traceback, that may show the class.
_MESSAGE_LINES, _LAST_LINES = 10, 5
_CLASSES = {
    "ModuleNotFoundError": "import",
    "ImportError": "import",
    "MemoryError": OUT_OF_MEMORY,
    "OutOfMemoryError": OUT_OF_MEMORY,
}
#: Of the package toolkit, raised by calls of a script to it. Other libraries have errors of these names.
_OWN_CLASSES = {"UserError": INPUT, "ConfigError": INPUT, "DataError": INPUT}
#: In a CheckpointError of the ranks that did not fail themselves (toolkit.workloads.custom.script.ranks).
_ELSEWHERE = " on another rank; "
#: A frame of a stack in C++, of which torch prints many below an error.
_FRAME = re.compile(r"\s*(frame #\d+:|#\d+ (0x|.* from \S+:\d+))")
#: A line of the summary that wandb or Comet prints as the process ends.
_SUMMARY = re.compile(r"\s*(wandb:(?! ERROR)|COMET INFO:|$)")
#: Before a traceback of an error in a destructor, as when Python ends.
_IGNORED = "Exception ignored "
#: Replaces the usual advice on a class, which is for tasks of the toolkit.
_ADVICE = {
    OUT_OF_MEMORY: "Request more memory, or use less in the program, for example with smaller batches."
}
_BY_SIGNAL = " With PYTHONFAULTHANDLER=1 in resources.environment, Python shows where the signal came."


def failure_of(
    world: World, code: int, output: str, step: int | None, *, is_oom: bool = False
) -> dict[str, Any]:
    """Return the failure record of a command with a failing status, or of a function that did not return.

    output   the end of its output
    step     the last step that it has logged; None if it logs none
    is_oom   whether memory ran out on this host during the attempt
    """
    output = _PREFIX.sub("", without_escapes(output).replace("\r", "\n"))
    output = _without_summary(output)
    lines = [line for line in output.splitlines() if line.strip()]
    kind, shown = _class(code, output, lines)
    if kind == PEER_LOST and world.size == 1 and _ERRNO.search(shown):
        # An error of Python. Those of torch about another process, as of torchrun, have no errno.
        kind, shown = _of_single_process(code, shown)
    if kind == KILLED and is_oom:
        kind = OOM_KILLED
    message = _ending(code) + (f": {shown}" if shown else "")
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
    if kind == "exception" and not (_PRINTED in output or _STACK.search(output)):
        advice = "The log has no traceback: see its last lines." + (_BY_SIGNAL if _signal(code) else "")
    return {**record, "advice": advice}


def _without_summary(output: str) -> str:
    """The output without the summary of a tracker at its end."""
    lines = output.split("\n")
    while lines and _SUMMARY.match(lines[-1]):
        lines.pop()
    return "\n".join([*lines, ""])


def _class(code: int, text: str, lines: list[str]) -> tuple[str, str]:
    """The failure class, and the line that shows it."""
    parts = [] if code < 0 else _tracebacks(text)
    every = [each for each in map(_raised, parts) if each is not None]
    # An exception followed by many lines was handled. That of torchrun has seven lines for each process.
    raised = [each for each in every if each.lines_below <= _SHOWN_LINES or each.name == _TORCHRUN]
    if raised and raised[-1] is every[-1]:
        cause = _cause(raised)
        return cause.kind, cause.line
    # An abort outside of Python may print its cause long before the end of the output.
    searched = lines if _signal(code) == signal.SIGABRT else lines[-_LAST_LINES:]
    if (by_words := class_by_words("\n".join(searched))) is not None:
        kind, words = by_words
        return kind, next(line.strip() for line in searched if words in line)
    if _signal(code) == signal.SIGKILL:
        return KILLED, ""
    shown = lines[-1].strip() if lines else ""
    found = _EXCEPTION.match(shown)
    kind = _class_of(found[1], found[2], shown) if found else "exception"
    return kind, shown.removeprefix("toolkit.errors.")


def _of_single_process(code: int, shown: str) -> tuple[str, str]:
    """The failure class of a process that has no peers and shows a broken connection, and what to show."""
    if _signal(code) == signal.SIGKILL:
        # Its children show that they have lost it.
        return KILLED, ""
    # A pipe leads to a child. Other errors with this errno are about a server.
    return "exception" if shown.startswith("BrokenPipeError:") else IO, shown


def _tracebacks(text: str) -> list[str]:
    """The text after the beginning of each traceback; one of an error that Python ignores begins no part."""
    found: list[str] = []
    for before, part in pairwise(_TRACEBACK.split(text)):
        if _IGNORED not in before.rstrip().rpartition("\n")[2]:
            found.append(part)
        elif found:
            found[-1] += part
    return found


def _class_of(package: str, name: str, message: str) -> str:
    """The failure class of an exception; `package` ends with a dot, or is empty."""
    line = message.partition("\n")[0]
    if package.startswith("toolkit.") and name == "CheckpointError":
        return _class_of_checkpoint(line)
    if package.startswith("toolkit.") and name in _OWN_CLASSES:
        return _OWN_CLASSES[name]
    if (by_words := class_by_words(message)) is not None:
        return by_words[0]
    if _STORE in line and any(word in line for word in PORT_WORDS):
        return ADDRESS_IN_USE
    by_errno = _CLASSES_BY_ERRNO.get(int(found[1])) if (found := _ERRNO.search(line)) else None
    return by_errno or _CLASSES.get(name, "exception")


def _class_of_checkpoint(line: str) -> str:
    """The failure class of a CheckpointError of the toolkit."""
    # The run's folder could be written before: a read-only file system concerns this host.
    if not any(os.strerror(each) in line for each in IO_ERRORS - NO_ROOM):
        return "checkpoint"
    return PEER_LOST if _ELSEWHERE in line else IO


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raised:
    """The exception at the end of a traceback: its name, its failure class, its first line."""

    name: str
    kind: str
    line: str
    lines_below: int


def _raised(text: str) -> _Raised | None:
    """Return the exception that a traceback ends with; None if the output ends before it."""
    if (found := _EXCEPTION.search(text)) is None:
        return None
    package, name, said = found.groups()
    message = text[found.start() :].splitlines()
    kind = _class_of(package, name, "\n".join(message[:_MESSAGE_LINES]))
    if said and said.endswith(":") and message[1:] and re.match(r"\s+\S", message[1]):
        # As of load_state_dict: the facts are in the next line, indented.
        said = f"{said} {message[1].strip()}"
    line = f"{name}: {said}" if said else name
    below = sum(_FRAME.match(each) is None for each in message)
    return _Raised(name=name, kind=kind, line=line, lines_below=below)


def _cause(raised: list[_Raised]) -> _Raised:
    """Return the exception that says why the program failed. In most cases it is the last one."""
    if raised[-1].name in _OF_LAUNCHERS:
        own = [each for each in raised if each.name not in _OF_LAUNCHERS] or raised
        # With several processes the cause counts, not the errors of the others about a lost peer.
        raised = [each for each in own if each.kind not in _OF_PEERS] or own[:1]
    is_of_worker = _WORKER_GONE in raised[-1].line and len(raised) > 1 and raised[-2].kind == OOM_KILLED
    return raised[-2 if is_of_worker else -1]


def _signal(code: int) -> int:
    """The signal in an exit status, as Popen or a shell reports it; 0 for none."""
    return -code if code < 0 else max(0, code - 128)


def _ending(code: int) -> str:
    if code < 0:
        # A real-time signal has no name.
        named = (each.name for each in signal.Signals if each == -code)
        return f"the command was ended by {next(named, f'signal {-code}')}"
    if code == 0:
        return "the function ended the process without returning"
    return f"the command ended with status {code}"
