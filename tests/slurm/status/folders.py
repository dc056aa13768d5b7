"""Run folders as runs leave them, written by hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from slurm.client.queue import JobState
from slurm.status.run_files import read_folder
from slurm.status.run_state import RunState, run_state
from slurm.status.submissions import record
from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir


def new_run(parent: Path, name: str = "tiny-0123abcd") -> RunDir:
    run = RunDir(parent / name)
    run.path.mkdir(parents=True)
    run.config.write_text("name: tiny\n")
    return run


def submitted(run: RunDir, job_id: str = "101", **facts: Any) -> None:
    record(run, cluster="slurm", job_id=job_id, name=f"{run.run_id}.0", **facts)


def started(run: RunDir, attempt: int = 1, *, job: str = "101", restart: int = 0, **facts: Any) -> None:
    """An attempt of this job, as attempts.jsonl has it once it has made steps."""
    line = {
        "attempt": attempt,
        "job_id": job,
        "restart": restart,
        "nonce": f"{job}.0.{restart}",
        "hosts": ["node1", "node2"],
        "world_size": 2,
        "time_start": time.time() - 60,
        "first_step": 0,
    }
    append_json_line(run.attempts, {**line, **facts})


def ended(run: RunDir, attempt: int = 1, why: str = "SIGTERM", **facts: Any) -> None:
    line = {"attempt": attempt, "time_end": time.time(), "last_step": 10, "why": why}
    append_json_line(run.attempts, {**line, **facts})


def beats(
    run: RunDir, phase: str = "forward", *, ago_s: float = 1.0, nonce: str = "101.0.0", **facts: Any
) -> None:
    """The heartbeat of rank 0."""
    path = run.heartbeat(nonce, 0)
    path.parent.mkdir(exist_ok=True)
    beat = {"rank": 0, "host": "node1", "time": time.time() - ago_s, "phase": phase, "step": 5}
    write_json(path, {**beat, "still_s": 0.2, "limit_s": 600.0, **facts})


def state_of(run: RunDir, job: JobState | None = None) -> RunState:
    """What is said of the run while Slurm says this of its job."""
    return run_state(read_folder(run), job, time.time())
