"""The attempts of a run, found by their records and logs: each log's file and rank, and the failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import RunFailed, RunNotFound
from toolkit.files import read_json
from toolkit.run.attempts.records import AttemptRecord, read_attempts
from toolkit.run.failure.records import first_failure
from toolkit.run.records.ranks import hosts_of
from toolkit.run.run_dir import RunDir


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAttempt:
    """One attempt of a run.

    number  as in attempts.jsonl; without a line there, the number that it will get, or None if later
            attempts have a line
    logs    file by rank
    hosts   host by rank, for ranks that have recorded it
    record  line of attempts.jsonl; None without one
    """

    number: int | None
    nonce: str
    logs: Mapping[int, Path] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)
    record: AttemptRecord | None = None

    @property
    def job_id(self) -> str | None:
        return self.record.job_id if self.record else None

    @property
    def time_s(self) -> float | None:
        """The start in seconds since 1970; None without a record, or if it has no time."""
        return self.record.time_start if self.record else None

    @property
    def title(self) -> str:
        name = f"attempt {self.nonce if self.number is None else self.number}"
        return f"{name}, job {self.job_id}" if self.job_id else name


def logged_attempts(run: RunDir) -> list[LoggedAttempt]:
    """Return all attempts of a run that have a line in attempts.jsonl or a log, oldest first."""
    logs: dict[str, dict[int, Path]] = defaultdict(dict)
    for nonce, rank, path in run.rank_logs():
        logs[nonce][rank] = path
    records = read_attempts(run)
    named = {record.nonce for record in records}
    unnamed = [nonce for nonce in logs if nonce not in named]
    known = [_attempt(run, record.attempt, _nonce(record, unnamed), logs, record) for record in records]
    claimed = {attempt.nonce for attempt in known}
    # Attempts without a record are starting if their logs are newer than the last recorded attempt.
    begun = max((attempt.time_s or 0.0 for attempt in known), default=0.0)
    written = {name: max(map(_written, logs[name].values())) for name in logs if name not in claimed}
    ordered = sorted(written, key=lambda nonce: (written[nonce], nonce))
    starting = [nonce for nonce in ordered if written[nonce] > begun]
    last = known[-1].number or 0 if known else 0
    return [
        *(_attempt(run, None, nonce, logs) for nonce in ordered if nonce not in starting),
        *known,
        *(_attempt(run, number, nonce, logs) for number, nonce in enumerate(starting, start=last + 1)),
    ]


def _attempt(
    run: RunDir,
    number: int | None,
    nonce: str,
    logs: Mapping[str, Mapping[int, Path]],
    record: AttemptRecord | None = None,
) -> LoggedAttempt:
    return LoggedAttempt(
        number=number,
        nonce=nonce,
        logs=dict(sorted(logs.get(nonce, {}).items())),
        hosts=hosts_of(run, nonce, record.attempt if record else None),
        record=record,
    )


def _nonce(record: AttemptRecord, unnamed: Iterable[str]) -> str:
    """Return the nonce of an attempt; without one in its record, that of logs with its job and restart.

    unnamed  nonces of logs that no record names
    """
    if record.nonce:
        return record.nonce
    begin, end = f"{record.job_id}.", f".{record.restart}"
    return next((nonce for nonce in unnamed if nonce.startswith(begin) and nonce.endswith(end)), "")


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def chosen(run: RunDir, number: int, every: Sequence[LoggedAttempt]) -> LoggedAttempt:
    """Return the attempt with this number. Raises RunNotFound."""
    for attempt in every:
        if attempt.number == number:
            return attempt
    known = ", ".join(str(attempt.number) for attempt in every if attempt.number is not None) or "none"
    raise RunNotFound(f"{run.run_id} has no attempt {number}; there are: {known}")


def failure_of(run: RunDir, attempt: LoggedAttempt | None, *, is_newest: bool) -> dict[str, Any] | None:
    """Return the first failure of an attempt; None if no failure is known.

    failure.json belongs to the newest attempt and takes precedence for it. Raises RunFailed if the file is
    damaged.
    """
    try:
        known = read_json(run.failure)
        if isinstance(known, dict) and (is_newest or (attempt and known.get("nonce") == attempt.nonce)):
            return known
        return first_failure(run, attempt.nonce) if attempt is not None and attempt.nonce else None
    except (OSError, ValueError) as error:
        raise RunFailed(f"{run.failure} cannot be read: {error}") from error
