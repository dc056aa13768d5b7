"""What one run's folder says, read once and quickly: of ten thousand runs in a second or two.

Each file is opened at most once, with as few calls of the system as can be, and of a finished run only
three are: on a network file system each is a question to the server. A damaged file is a fault that is told,
never an error of the command.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm import awaited
from slurm.submissions import Submission
from toolkit.rundir import RunDir

#: Names alone: joining paths with pathlib would cost more than reading the files.
_NAMES = RunDir(Path())
_JOB = _NAMES.job.name
_RESULT, _PROGRESS, _FAILURE = _NAMES.result.name, _NAMES.progress.name, _NAMES.failure.name
_SUBMISSIONS, _ATTEMPTS, _EVENTS = _NAMES.submissions.name, _NAMES.attempts.name, _NAMES.events.name
_ALIVE, _INTENT = _NAMES.alive.name, _NAMES.intent.name

_BLOCK_BYTES = 1 << 17
#: Enough for the last events of a run.
_TAIL_BYTES = 8192
#: A key of job.yaml that asks for GPUs. Parsing YAML would take a hundred times as long.
_GPUS = re.compile(rb"^(?:gres: .*gpu|gpus_per_\w+: (?!null)|hosts: *$|\s*(?:- )?gpus: [1-9])", re.MULTILINE)
_FIELDS = ("cluster", "job_id", "host", "name", "time")
_TYPES: tuple[type | tuple[type, ...], ...] = (str, str, str, str, (int, float))


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What a run's folder says.

    submission    the newest one
    sweep         the name of the array that it was part of; empty where it was none
    awaits_another   whether it was submitted to begin when another run has finished
    result, progress, failure   the documents of these names; empty where there is none
    starts        the lines of attempts.jsonl, one for each start
    has_result    whether the run has finished
    has_lock, has_intent   of one that has not finished: whether these files are there
    faults        what could not be read, in words
    """

    run: RunDir
    submission: Submission | None = None
    sweep: str = ""
    awaits_another: bool = False
    result: dict[str, Any]
    progress: dict[str, Any]
    failure: dict[str, Any]
    starts: list[dict[str, Any]]
    has_result: bool = False
    has_lock: bool = False
    has_intent: bool = False
    faults: tuple[str, ...] = ()

    @property
    def last_start(self) -> dict[str, Any]:
        """The line of the newest start; empty where there was none."""
        return self.starts[-1] if self.starts else {}

    @property
    def job_id(self) -> str | None:
        """Slurm's id of the job that Slurm has to be asked about; None where it need not be asked."""
        submission = self.submission
        if self.has_result or submission is None or submission.cluster != "slurm":
            return None
        return submission.job_id


def read_folder(run: RunDir) -> Folder:
    """Read what is there; never raises for what a folder holds, or for a folder that has gone."""
    reader = _Reader(str(run.path))
    result = reader.document(_RESULT)
    has_result = result is not None
    submission, line = _newest(reader.lines(_SUBMISSIONS))
    return Folder(
        run=run,
        submission=submission,
        sweep=str(line.get("array") or ""),
        awaits_another=bool(line.get(awaited.KEY)),
        result=result or {},
        # All that it could add to a result stands in there.
        progress={} if result else reader.document(_PROGRESS) or {},
        failure={} if has_result else reader.document(_FAILURE) or {},
        starts=_starts(reader.lines(_ATTEMPTS)),
        has_result=has_result,
        has_lock=not has_result and reader.has(_ALIVE),
        has_intent=not has_result and reader.has(_INTENT),
        faults=tuple(reader.faults if reader.found else [*reader.faults, *reader.missing_folder()]),
    )


def wants_gpus(run: RunDir) -> bool:
    """Whether the run was submitted with GPUs, as far as its job.yaml says."""
    reader = _Reader(str(run.path))
    return _GPUS.search(reader.content(_JOB) or b"") is not None


def last_events(run: RunDir) -> list[dict[str, Any]]:
    """The newest events of a run, some dozens, oldest first."""
    reader = _Reader(str(run.path))
    return list(reader.lines(_EVENTS, from_end=_TAIL_BYTES))


class _Reader:
    """Reads files of one folder, and remembers which it could not read, and whether it found any."""

    __slots__ = ("_folder", "faults", "found")

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.faults: list[str] = []
        self.found = False

    def has(self, name: str) -> bool:
        return os.path.exists(f"{self._folder}/{name}")

    def missing_folder(self) -> Iterator[str]:
        """Why there was nothing to be found, if that is the folder's fault."""
        try:
            os.listdir(self._folder)
        except OSError as error:
            yield f"the folder cannot be read: {error.strerror}"

    def content(self, name: str, from_end: int | None = None) -> bytes | None:
        """The bytes of a file, or of its end; None where there is no such file."""
        try:
            descriptor = os.open(f"{self._folder}/{name}", os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.faults.append(f"{name} cannot be read: {error.strerror}")
            return b""
        self.found = True
        try:
            if from_end is not None:
                os.lseek(descriptor, max(0, os.fstat(descriptor).st_size - from_end), os.SEEK_SET)
            return _read(descriptor)
        except OSError as error:
            self.faults.append(f"{name} cannot be read: {error.strerror}")
            return b""
        finally:
            os.close(descriptor)

    def document(self, name: str) -> dict[str, Any] | None:
        """What a JSON file holds; empty where that cannot be read, None where there is no such file."""
        raw = self.content(name)
        if not raw:
            return None if raw is None else {}
        if isinstance(found := _parsed(raw), dict):
            return found
        self.faults.append(f"{name} is damaged")
        return {}

    def lines(self, name: str, from_end: int | None = None) -> Iterator[dict[str, Any]]:
        """The records of a file of JSON lines; torn and foreign lines are left out."""
        lines = (self.content(name, from_end) or b"").split(b"\n")[:-1]
        # All at once, which takes half as long; one by one where a line is damaged.
        records = _parsed(b"[%b]" % b",".join(lines))
        for record in map(_parsed, lines) if records is None else records:
            if isinstance(record, dict):
                yield record


def _parsed(raw: bytes) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _read(descriptor: int) -> bytes:
    """All that is left of an open file."""
    raw = block = os.read(descriptor, _BLOCK_BYTES)
    # A regular file gives less than it is asked for only at its end.
    while len(block) == _BLOCK_BYTES:
        block = os.read(descriptor, _BLOCK_BYTES)
        raw += block
    return raw


def _newest(lines: Iterator[dict[str, Any]]) -> tuple[Submission | None, dict[str, Any]]:
    """The newest submission, and all that was written down of it."""
    for line in reversed(list(lines)):
        facts = [line.get(name) for name in _FIELDS]
        if all(isinstance(fact, kind) for fact, kind in zip(facts, _TYPES, strict=True)):
            return Submission(**dict(zip(_FIELDS, facts, strict=True))), line
    return None, {}


def _starts(lines: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record for each start; of several lines about one the later ones complete it."""
    starts: dict[int, dict[str, Any]] = {}
    for line in lines:
        if isinstance(number := line.get("attempt"), int):
            starts.setdefault(number, {}).update(line)
    return [starts[number] for number in sorted(starts)]
