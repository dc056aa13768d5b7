"""The filters and orders of `stk status`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

from slurm.client.queue import State
from slurm.status.rows import RunStatus
from toolkit.run.run_dir import RunDir

STATES: tuple[str, ...] = get_args(State)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)

#: The order of states for sorting: runs that may need attention come first.
_BY_STATE = ("running", "requeued", "pending", "held", "failed", "unknown", "cancelled", "finished")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A filter of runs; all conditions must hold.

    states   any of these; empty for all
    name     a pattern of ids, such as bert-*; None for all
    sweep    a pattern of the names of arrays; None for all
    members  ids of runs that belong to `sweep` without its array
    since    seconds since the epoch: only runs that run now, or were updated after that time
    is_live  only runs that wait, run or are held
    """

    states: frozenset[str] = frozenset()
    name: str | None = None
    sweep: str | None = None
    members: frozenset[str] = frozenset()
    since: float | None = None
    is_live: bool = False

    def of_runs(self, runs: Sequence[RunDir]) -> list[RunDir]:
        """Return the runs that match the name; reads no files."""
        return [run for run in runs if self.name is None or fnmatchcase(run.run_id, self.name)]

    def of_rows(self, rows: Sequence[RunStatus]) -> list[RunStatus]:
        """Return the rows that meet all other conditions."""
        return [row for row in rows if self._wants(row)]

    def _wants(self, row: RunStatus) -> bool:
        # A single run has no sweep, which * would match.
        is_of_sweep = self.sweep is None or (bool(row.sweep) and fnmatchcase(row.sweep, self.sweep))
        return (
            (not self.states or row.state in self.states)
            and (is_of_sweep or row.run_id in self.members)
            and (self.since is None or row.state == "running" or (row.updated or 0.0) >= self.since)
            and (row.is_live or not self.is_live)
        )


#: Sort keys: best, furthest, newest, most first, as in `stk status --help`.
_KEYS: dict[str, Callable[[RunStatus], float | int | str | None]] = {
    "name": lambda row: row.run_id,
    "state": lambda row: _BY_STATE.index(row.state),
    "progress": lambda row: None if row.percent is None else -row.percent,
    "metric": lambda row: _goodness(row),
    "age": lambda row: None if row.updated is None else -row.updated,
    "gpu-hours": lambda row: None if row.gpu_hours is None else -row.gpu_hours,
}
ORDERS = tuple(_KEYS)


def ordered(rows: Sequence[RunStatus], by: str, *, is_reversed: bool = False) -> list[RunStatus]:
    """Return the rows sorted by one of ORDERS, then by name; rows without a value always come last."""
    key = _KEYS[by]
    # Called once for each row, because the key of the metric may read a file.
    pairs = [(key(row), row) for row in sorted(rows, key=lambda row: row.run_id)]
    known = [pair for pair in pairs if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=is_reversed)  # type: ignore[arg-type,return-value]
    return [row for _, row in known] + [row for place, row in pairs if place is None]


def _goodness(row: RunStatus) -> float | None:
    """Return a sort key of the main metric, smaller is better; None if the goal is unknown."""
    if row.main_value is None or (goal := row.main_goal or _declared_goal(row)) is None:
        return None
    return row.main_value if goal == "min" else -row.main_value


def _declared_goal(row: RunStatus) -> str | None:
    # Slow to import, and only this order needs them.
    from toolkit.errors import DataError
    from toolkit.report.model import goal_of
    from toolkit.report.reading import read_config

    try:
        return goal_of(read_config(RunDir(Path(row.run_dir)).config), row.main_metric or "")
    except (DataError, OSError):
        return None


def moment(text: str, now: float | None = None) -> float:
    """Parse a time of a user; return seconds since the epoch.

    The text is a period before now, such as `2d` (s, m, h, d, w), or a local date such as 2026-03-01T14:00.
    Raises ValueError.
    """
    with suppress(ValueError):
        return (time.time() if now is None else now) - span_s(text)
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text.strip()).timestamp()
    raise ValueError(f"{text!r} is neither a span such as 2d, 3h or 30m, nor a date such as 2026-03-01")


def span_s(text: str) -> float:
    """Parse a period such as `2d` (s, m, h, d, w); return its seconds. Raises ValueError."""
    if (match := _SPAN.fullmatch(text.strip())) is None:
        raise ValueError(f"{text!r} is not a period: expected a number and s, m, h, d or w, such as 7d")
    return float(match[1]) * _UNITS[match[2]]


def states(text: str) -> frozenset[str]:
    """Return the states of a list such as `running,failed`. Raises ValueError with the invalid word."""
    found = [word.strip() for word in text.split(",")]
    for word in found:
        if word not in STATES:
            raise ValueError(f"{word!r} is not one of {', '.join(STATES)}")
    return frozenset(found)
