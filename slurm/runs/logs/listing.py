"""Which logs there are: a row for each start, or an entry for each file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from slurm.runs.logs.starts import Start, starts
from toolkit.run.run_dir import RunDir
from toolkit.system.few import few


def entries(run: RunDir) -> list[dict[str, Any]]:
    """One entry for each log, as `stk logs --list --json` prints them; times in seconds since 1970."""
    of_ranks = [_entry(start, rank, path) for start in starts(run) for rank, path in start.logs.items()]
    return [*of_ranks, *(_job_entry(path) for path in run.job_logs())]


def _entry(start: Start, rank: int, path: Path) -> dict[str, Any]:
    record = start.record
    return {
        "attempt": start.number,
        "nonce": start.nonce,
        "job_id": start.job_id,
        "restart": record and record.restart,
        "rank": rank,
        "host": start.hosts.get(rank),
        "path": str(path),
        **_facts(path),
        "first_time": start.time_s,
        "why": record and record.why,
    }


def _job_entry(path: Path) -> dict[str, Any]:
    empty = dict.fromkeys(("attempt", "nonce", "job_id", "restart", "host", "first_time", "why"))
    return {**empty, "rank": "batch", "path": str(path), **_facts(path)}


def _facts(path: Path) -> dict[str, Any]:
    try:
        known = path.stat()
    except OSError:
        return {"bytes": None, "last_time": None}
    return {"bytes": known.st_size, "last_time": known.st_mtime}


def table(run: RunDir) -> list[str]:
    """One line for each start, and one for each log of a job: for a terminal."""
    rows: list[tuple[str, ...]] = [("start", "job", "ranks", "hosts", "size", "began", "last line", "ended")]
    rows += [_row(start) for start in starts(run)]
    rows += [_job_row(path) for path in run.job_logs()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(start: Start) -> tuple[str, ...]:
    facts = [_facts(path) for path in start.logs.values()]
    hosts = list(dict.fromkeys(start.hosts.values())) or list(start.record.hosts if start.record else ())
    return (
        start.nonce if start.number is None else str(start.number),
        start.job_id or "–",
        _ranges(list(start.logs)) or "no log",
        few(hosts, 3),
        _size(sum(each["bytes"] or 0 for each in facts)),
        _clock(start.time_s),
        _clock(max((each["last_time"] or 0.0 for each in facts), default=None)),
        (start.record and start.record.why) or ("before it began" if start.time_s is None else "–"),
    )


def _job_row(path: Path) -> tuple[str, ...]:
    facts = _facts(path)
    return ("batch", path.name, "", "", _size(facts["bytes"] or 0), "", _clock(facts["last_time"]), "")


def _ranges(numbers: Sequence[int]) -> str:
    """0-3, 7"""
    groups = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    spans = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def _size(number: int) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 10_000:
            return f"{number} {unit}"
        number //= 1000
    return f"{number} GB"


def _clock(time_s: float | None) -> str:
    try:
        return "–" if time_s is None else datetime.fromtimestamp(time_s).strftime("%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "–"
