"""The filters and orders of `stk status`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from slurm.status.rows import RunStatus
from toolkit.run.run_dir import RunDir

#: The order of states for sorting: runs that may need attention come first.
_BY_STATE = ("running", "requeued", "pending", "held", "failed", "unknown", "cancelled", "finished")


def matches(
    row: RunStatus,
    *,
    states: Collection[str] = (),
    sweep: str | None = None,
    members: Collection[str] = (),
    since: float | None = None,
    is_live: bool = False,
) -> bool:
    """Whether a run meets all conditions.

    states   any of these; empty for all
    sweep    a pattern of the names of arrays; None for all
    members  ids of runs that belong to `sweep` without its array
    since    seconds since the epoch: only runs that run now, or were updated after that time
    is_live  only runs that wait, run or are held
    """
    # A single run has no sweep, which * would match.
    is_of_sweep = sweep is None or (bool(row.sweep) and fnmatchcase(row.sweep, sweep))
    return (
        (not states or row.state in states)
        and (is_of_sweep or row.run_id in members)
        and (since is None or row.state == "running" or (row.updated or 0.0) >= since)
        and (row.is_live or not is_live)
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
    from toolkit.errors import DataError
    from toolkit.report.model import goal_of
    from toolkit.report.reading import read_config

    try:
        return goal_of(read_config(RunDir(Path(row.run_dir)).config), row.main_metric or "")
    except (DataError, OSError):
        return None
