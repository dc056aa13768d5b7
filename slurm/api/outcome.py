"""The result of a run, or the error that says why there is none."""

from __future__ import annotations

from typing import Any

from slurm.status.rows import RunStatus
from toolkit.errors import RunCancelled, RunFailed, StkError
from toolkit.files import read_json
from toolkit.run.failure.format import format_failure
from toolkit.run.run_dir import RunDir
from toolkit.system.sanitize import clean


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
