"""One run's folder, read once and quickly: ten thousand runs in a second or two.

Each file is opened at most once, with as few calls of the system as can be, and of a finished run only
three are: on a network file system each is a question to the server. A damaged file is reported as a fault,
and is never an error of the command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slurm.client.parse import is_job_id
from slurm.status.submissions import Submission, submission_of
from toolkit.files import parsed, regular
from toolkit.run.attempts.records import AttemptRecord, attempt_records
from toolkit.run.records.failures import FailureRecord
from toolkit.run.records.from_json import from_json
from toolkit.run.run_dir import RunDir

#: Names alone: joining paths with pathlib would cost more than reading the files.
_NAMES = RunDir(Path())
_JOB = _NAMES.job.name
_RESULT, _PROGRESS, _FAILURE = _NAMES.result.name, _NAMES.progress.name, _NAMES.failure.name
_SUBMISSIONS, _ATTEMPTS = _NAMES.submissions.name, _NAMES.attempts.name
_ALIVE, _INTENT = _NAMES.alive.name, _NAMES.intent.name

#: No document or list of records of a run comes near it.
_MOST_BYTES = 1 << 28
_BLOCK_BYTES = 1 << 17
#: A key of job.yaml that asks for GPUs. Parsing YAML would take a hundred times as long.
_GPUS = re.compile(rb"^(?:gres: .*gpu|gpus_per_\w+: (?!null)|hosts: *$|\s*(?:- )?gpus: [1-9])", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The content of a run's folder.

    submission    the newest one
    result, progress   contents of result.json and progress.json; empty if the file is missing
    failure       the failure of an unfinished run; None if it has not failed
    attempts        the records of attempts.jsonl, one for each attempt
    has_result    whether the run has finished
    has_lock, has_intent   of one that has not finished: whether these files are there
    faults        what could not be read, in words
    """

    run: RunDir
    submission: Submission | None = None
    result: dict[str, Any]
    progress: dict[str, Any]
    failure: FailureRecord | None = None
    attempts: list[AttemptRecord]
    has_result: bool = False
    has_lock: bool = False
    has_intent: bool = False
    faults: tuple[str, ...] = ()

    @property
    def last_attempt(self) -> AttemptRecord | None:
        """The newest attempt; None where there was none."""
        return self.attempts[-1] if self.attempts else None

    @property
    def job_id(self) -> str | None:
        """Slurm's id of the job that Slurm has to be asked about; None where it need not be asked."""
        submission = self.submission
        if self.has_result or submission is None or submission.cluster != "slurm":
            return None
        return submission.job_id if is_job_id(submission.job_id) else None


def read_folder(run: RunDir) -> Folder:
    """Read what is there; never raises for what a folder holds, or for a folder that has gone."""
    reader = _Reader(str(run.path))
    result = reader.document(_RESULT)
    has_result = result is not None
    found = filter(None, map(submission_of, reversed(list(reader.lines(_SUBMISSIONS)))))
    submission = next(found, None)
    if submission is not None and submission.cluster == "slurm" and not is_job_id(submission.job_id):
        reader.faults.append(f"{_SUBMISSIONS} names no job of Slurm: {submission.job_id[:40]!r}")
    # The result already has all that it could add.
    progress = {} if result else reader.document(_PROGRESS) or {}
    failure = None if has_result else reader.document(_FAILURE)
    return Folder(
        run=run,
        submission=submission,
        result=result or {},
        progress=progress,
        failure=from_json(FailureRecord, failure) if failure else None,
        attempts=attempt_records(reader.lines(_ATTEMPTS)),
        has_result=has_result,
        has_lock=not has_result and reader.has(_ALIVE),
        has_intent=not has_result and reader.has(_INTENT),
        faults=tuple(reader.faults if reader.found else [*reader.faults, *reader.missing_folder()]),
    )


def wants_gpus(run: RunDir) -> bool:
    """Whether the run was submitted with GPUs, according to its job.yaml."""
    reader = _Reader(str(run.path))
    return _GPUS.search(reader.content(_JOB) or b"") is not None


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

    def content(self, name: str) -> bytes | None:
        """The bytes of a file; None where there is no such file."""
        try:
            descriptor = regular(f"{self._folder}/{name}", os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.faults.append(f"{name} cannot be read: {error.strerror}")
            return b""
        self.found = True
        try:
            if os.fstat(descriptor).st_size > _MOST_BYTES:
                self.faults.append(f"{name} is too large to be one of a run")
                return b""
            return _read(descriptor)
        except OSError as error:
            self.faults.append(f"{name} cannot be read: {error.strerror}")
            return b""
        finally:
            os.close(descriptor)

    def document(self, name: str) -> dict[str, Any] | None:
        """Return the content of a JSON file; empty if it cannot be read, None if there is no such file."""
        raw = self.content(name)
        if not raw:
            return None if raw is None else {}
        if isinstance(found := parsed(raw), dict):
            return found
        self.faults.append(f"{name} is damaged")
        return {}

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        """The records of a file of JSON lines; torn and foreign lines are left out."""
        lines = (self.content(name) or b"").split(b"\n")[:-1]
        # All at once, which takes half as long; one by one where a line is damaged.
        records = parsed(b"[%b]" % b",".join(lines))
        for record in map(parsed, lines) if records is None else records:
            if isinstance(record, dict):
                yield record


def _read(descriptor: int) -> bytes:
    """All that is left of an open file."""
    raw = block = os.read(descriptor, _BLOCK_BYTES)
    # A regular file gives less than it is asked for only at its end.
    while len(block) == _BLOCK_BYTES:
        block = os.read(descriptor, _BLOCK_BYTES)
        raw += block
    return raw
