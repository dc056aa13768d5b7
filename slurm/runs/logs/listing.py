"""List the logs: a row for each attempt, or an entry for each file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from slurm.runs.logs.attempts import LoggedAttempt, logged_attempts
from toolkit.run.run_dir import RunDir
from toolkit.system.output.amounts import size
from toolkit.system.output.few import few


def entries(run: RunDir) -> list[dict[str, Any]]:
    """Return an entry for each log, for `stk logs --list --json`; times in seconds since 1970."""
    of_ranks = [
        _entry(attempt, rank, path) for attempt in logged_attempts(run) for rank, path in attempt.logs.items()
    ]
    empty = dict.fromkeys(("attempt", "nonce", "job_id", "restart", "host", "first_time", "why"))
    of_jobs = [{**empty, "rank": "batch", "path": str(path), **_facts(path)} for path in run.job_logs()]
    return [*of_ranks, *of_jobs]


def _entry(attempt: LoggedAttempt, rank: int, path: Path) -> dict[str, Any]:
    record = attempt.record
    return {
        "attempt": attempt.number,
        "nonce": attempt.nonce,
        "job_id": attempt.job_id,
        "restart": record and record.restart,
        "rank": rank,
        "host": attempt.hosts.get(rank),
        "path": str(path),
        **_facts(path),
        "first_time": attempt.time_s,
        "why": record and record.why,
    }


def _facts(path: Path) -> dict[str, Any]:
    try:
        known = path.stat()
    except OSError:
        return {"bytes": None, "last_time": None}
    return {"bytes": known.st_size, "last_time": known.st_mtime}


def table(run: RunDir) -> list[str]:
    """Return a line of text for each attempt, and for each log of a job."""
    rows: list[tuple[str, ...]] = [
        ("attempt", "job", "ranks", "hosts", "size", "began", "last line", "ended")
    ]
    every = logged_attempts(run)
    rows += [(*_row(attempt), _ended(run, attempt, is_newest=attempt is every[-1])) for attempt in every]
    for path in run.job_logs():
        facts = _facts(path)
        last = _clock(facts["last_time"])
        rows.append(("batch", path.name, "", "", size(facts["bytes"] or 0), "", last, ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(attempt: LoggedAttempt) -> tuple[str, ...]:
    facts = [_facts(path) for path in attempt.logs.values()]
    recorded = attempt.record.hosts if attempt.record else ()
    return (
        attempt.nonce if attempt.number is None else str(attempt.number),
        attempt.job_id or "–",
        _ranges(list(attempt.logs)) or "no log",
        few(dict.fromkeys(attempt.hosts.values()) or recorded, 3),
        size(sum(each["bytes"] or 0 for each in facts)),
        _clock(attempt.time_s),
        _clock(max((each["last_time"] or 0.0 for each in facts), default=None)),
    )


def _ended(run: RunDir, attempt: LoggedAttempt, *, is_newest: bool) -> str:
    """Return why an attempt ended; a dash if that is unknown, or if it may be starting or training."""
    if attempt.record is not None and attempt.record.why:
        return attempt.record.why
    if attempt.time_s is not None:
        return "–"
    from slurm.status.rows import status

    if is_newest and ((now := status([run])[0]).state == "running" or now.doing == "starting"):
        return "–"
    return "before it began"


def _ranges(numbers: Sequence[int]) -> str:
    """Return sorted numbers as ranges: 0-3, 7."""
    groups = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    spans = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def _clock(time_s: float | None) -> str:
    try:
        return "–" if time_s is None else datetime.fromtimestamp(time_s).strftime("%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "–"
