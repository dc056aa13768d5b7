"""The output of `stk sweep --json` about a submission."""

from __future__ import annotations

from slurm.status.rows import status
from slurm.sweeps.candidates import Candidate
from slurm.sweeps.request import Wanted
from slurm.sweeps.submission import SubmittedRuns

ELSEWHERE = "was started by another command"


def answer(wanted: Wanted, cluster: str, handed: SubmittedRuns) -> dict[str, object]:
    """A line for each run, and the ids of the arrays."""
    values = {each.run_id: each.values for each in wanted.record.members}
    later = {each.run for each in handed.later}
    return {
        "sweep": wanted.folder.name,
        "sweep_dir": str(wanted.folder.path),
        "job_id": handed.arrays[0] if handed.arrays else None,
        "job_ids": handed.arrays,
        "cluster": cluster,
        "runs": [
            {
                "run_id": one.run.run_id,
                "run_dir": str(one.run.path),
                **_job(one, cluster, handed),
                "values": dict(values[one.run.run_id]),
                "change": one.change,
                "skipped": one.skipped or _skipped(one, handed, is_later=one.run in later),
            }
            for one in wanted.known
        ],
        "removed": [{"run_id": row.run_id, "state": row.state} for row in wanted.removed],
    }


def _job(one: Candidate, cluster: str, handed: SubmittedRuns) -> dict[str, object]:
    if one.run in handed.jobs:
        return {"job_id": handed.jobs[one.run].job_id, "state": "pending"}
    now = one.now
    if cluster == "local" and one.run.config.exists():
        (now,) = status([one.run])
    return {"job_id": now.job_id if now else None, "state": now.state if now else None}


def _skipped(one: Candidate, handed: SubmittedRuns, *, is_later: bool) -> str | None:
    if is_later:
        return f"waits: {handed.why}"
    # Another process started it between the first look and the lock.
    return ELSEWHERE if handed.jobs and one.run not in handed.jobs else None
