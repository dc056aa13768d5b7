"""Wait for the end of a run, which may have several jobs in sequence, and return its result."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from slurm.status.rows import RunStatus, status
from slurm.status.submissions import last_submission
from toolkit.errors import RunCancelled, RunFailed, StkError
from toolkit.files import read_json
from toolkit.run.failure.format import format_failure
from toolkit.run.run_dir import RunDir
from toolkit.system.output.sanitize import clean

#: Seconds between two queries, at first and at most; long for Slurm, because its controller serves all users.
_HERE_S, _SLURM_S = (0.05, 1.0), (2.0, 30.0)
_GROWTH = 1.5
#: Seconds between two looks for result.json.
_FOLDER_S = 1.0
#: Seconds after which an ended state is checked again: the last files of the job may not be visible here yet,
#: or the next attempt may not be in the queue yet.
_SETTLED_HERE_S, _SETTLED_SLURM_S = 0.05, 5.0


def wait_for_end(run: RunDir, timeout_s: float | None) -> RunStatus:
    """Wait for the end of a run; return its status. Raises TimeoutError with its current state.

    A run that is requeued, or continued by another job, has not ended. Neither has a run while Slurm does not
    answer.
    """
    deadline = float("inf") if timeout_s is None else monotonic() + timeout_s
    last = last_submission(run)
    is_slurm = last is not None and last.cluster == "slurm"
    pause_s, most_s = _SLURM_S if is_slurm else _HERE_S
    had_ended = False
    while True:
        (row,) = status([run])
        has_ended = not row.may_live
        if row.state == "finished" or (has_ended and had_ended):
            return row
        if monotonic() >= deadline:
            raise TimeoutError(f"{run.run_id} has not ended after {timeout_s:g} s: {in_words(row)}")
        settled_s = _SETTLED_SLURM_S if is_slurm else _SETTLED_HERE_S
        _sleep(run, min(settled_s if has_ended else pause_s, deadline - monotonic()))
        pause_s, had_ended = min(pause_s * _GROWTH, most_s), has_ended


def in_words(row: RunStatus) -> str:
    """Return the state of a run in a few words."""
    steps = f", step {row.step:,}" if row.step else ""
    of = f" of {row.total_steps:,}" if row.step and row.total_steps else ""
    return f"{row.doing or row.state}{steps}{of}"


def _sleep(run: RunDir, seconds: float) -> None:
    """Sleep, but only until result.json exists."""
    while seconds > 0 and not run.result.exists():
        part = min(seconds, _FOLDER_S)
        sleep(part)
        seconds -= part


def result_of(run: RunDir, row: RunStatus) -> Any:
    """Return the result of a finished function, or result.json. Raises RunFailed and RunCancelled."""
    if row.state != "finished":
        raise _error(run, row)
    returned = read_json(run.returned)
    return read_json(run.result) if returned is None else returned["value"]


def _error(run: RunDir, row: RunStatus) -> StkError:
    if row.state == "cancelled":
        why = f": {row.reason}" if row.reason else ""
        return RunCancelled(f"{run.run_id} was ended before it was done ({row.doing}){why}")
    failure = read_json(run.failure)
    if failure is None:
        return RunFailed(f"{run.run_id} has no result: {row.doing or row.state}. {row.reason}")
    said = format_failure(failure).removeprefix("error: ")
    trace = clean(str(failure.get("traceback") or ""))
    return RunFailed(f"{run.run_id} failed: {said}" + (f"\n\n{trace}" if "Traceback" in trace else ""))
