"""Read a run's folder once and quickly: ten thousand runs in a second or two.

Each file is opened at most once, with few system calls, and only three files of a finished run are opened:
on a network file system each call is a request to the server. A damaged file is reported as a fault, and
never an error of the command.
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

#: File names only: joining paths with pathlib would cost more time than reading the files.
_NAMES = RunDir(Path())
_JOB = _NAMES.job.name
_RESULT, _PROGRESS, _FAILURE = _NAMES.result.name, _NAMES.progress.name, _NAMES.failure.name
_SUBMISSIONS, _ATTEMPTS = _NAMES.submissions.name, _NAMES.attempts.name
_ALIVE, _INTENT = _NAMES.alive.name, _NAMES.intent.name

#: Largest size of a file; files of runs are much smaller.
_MOST_BYTES = 1 << 28
_BLOCK_BYTES = 1 << 17
#: A key of job.yaml that requests GPUs. Parsing YAML would take a hundred times as long.
_GPUS = re.compile(
    rb"^(?:gres: .*gpu|gpus_per_\w+: (?!null)|hosts: *$|\s*(?:- )?gpus(?:.per.socket)?: (?!0|null|false))",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The content of a run's folder.

    submission    the newest one
    result, progress   contents of result.json and progress.json; empty if the file is missing
    failure       the failure of an unfinished run; None if it has not failed
    attempts        the records of attempts.jsonl, one for each attempt
    has_result    whether the run has finished
    has_lock, has_intent   whether these files exist; False for a finished run
    faults        descriptions of files that could not be read
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
        """The newest attempt; None without any."""
        return self.attempts[-1] if self.attempts else None

    @property
    def job_id(self) -> str | None:
        """The id of the job to query in Slurm; None if no query is needed."""
        submission = self.submission
        if self.has_result or submission is None or submission.cluster != "slurm":
            return None
        return submission.job_id if is_job_id(submission.job_id) else None


def read_folder(run: RunDir) -> Folder:
    """Read a run's folder; never raises for its content, or if the folder is missing."""
    reader = _Reader(str(run.path))
    result = reader.document(_RESULT)
    has_result = result is not None
    found = filter(None, map(submission_of, reversed(list(reader.lines(_SUBMISSIONS)))))
    submission = next(found, None)
    if submission is not None and submission.cluster == "slurm" and not is_job_id(submission.job_id):
        reader.faults.append(f"{_SUBMISSIONS} names no job of Slurm: {submission.job_id[:40]!r}")
    # The result already includes the content of progress.json.
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
    """Reads files of one folder; records unreadable files, and whether any file was found."""

    __slots__ = ("_folder", "faults", "found")

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.faults: list[str] = []
        self.found = False

    def has(self, name: str) -> bool:
        return os.path.exists(f"{self._folder}/{name}")

    def missing_folder(self) -> Iterator[str]:
        """Yield a fault if the folder itself cannot be read."""
        try:
            os.listdir(self._folder)
        except OSError as error:
            yield f"the folder cannot be read: {error.strerror}"

    def content(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist, empty if it cannot be read."""
        try:
            descriptor = regular(f"{self._folder}/{name}", os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.faults.append(f"{name} cannot be read: {error.strerror}")
            return b""
        self.found = True
        try:
            raw = _read(descriptor)
        except OSError as error:
            self.faults.append(f"{name} cannot be read: {error.strerror}")
            return b""
        finally:
            os.close(descriptor)
        if raw is None:
            self.faults.append(f"{name} is too large to be one of a run")
        return raw or b""

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
        """Yield the records of a file of JSON lines; incomplete and invalid lines are left out."""
        lines = (self.content(name) or b"").split(b"\n")[:-1]
        # Parsed all at once, which takes half as long; line by line if one is damaged.
        records = parsed(b"[%b]" % b",".join(lines))
        for record in map(parsed, lines) if records is None else records:
            if isinstance(record, dict):
                yield record


def _read(descriptor: int) -> bytes | None:
    """Return the content of an open file; None if it is too large."""
    raw = os.read(descriptor, _BLOCK_BYTES)
    # A read of a regular file is short only at its end. Most files are read whole by the first one.
    if len(raw) < _BLOCK_BYTES:
        return raw
    if os.fstat(descriptor).st_size > _MOST_BYTES:
        return None
    while block := os.read(descriptor, _BLOCK_BYTES):
        raw += block
    return raw
