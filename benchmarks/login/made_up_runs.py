"""Made-up run folders of a busy group: most runs have finished, some train, wait, failed or are cancelled."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from toolkit.files import append_json_line
from toolkit.run.run_dir import RunDir

#: Runs of each kind among a hundred.
MIX = {"finished": 70, "failed": 9, "running": 8, "pending": 6, "requeued": 3, "cancelled": 2, "purged": 2}
STEPS = 5000
#: The fields of a job in squeue's output, in the order of `slurm.client.parse.JOB_FORMAT`.
_JOB = {
    "job_id": "",
    "raw_id": "",
    "state": "PENDING",
    "reason": "Priority",
    "restarts": "0",
    "requeue": "1",
    "submitted": "2026-01-01T00:00:00",
    "started": "N/A",
    "limit": "1:00:00",
    "hosts": "",
    "user": "ada",
    "partition": "main",
    "dependency": "",
    "work_dir": "/",
    "name": "job",
}


def make_runs(parent: Path, count: int) -> str:
    """Make run folders; return squeue's output about the jobs that Slurm still has a record of."""
    jobs: dict[str, dict[str, str]] = {}
    kinds = [kind for kind, number in MIX.items() for _ in range(number)]
    for number in range(count):
        # 37 is coprime to 100, so the kinds are mixed.
        kind, job_id = kinds[number * 37 % 100], str(100_000 + number)
        make_run(parent, f"study{number % 25:02d}-{number:08x}", kind, job_id)
        if (facts := job_of(kind)) is not None:
            jobs[job_id] = facts
    return "".join(_queue_line(job_id, facts) for job_id, facts in jobs.items())


def _queue_line(job_id: str, facts: dict[str, str]) -> str:
    """Return a job in the output format of squeue that `slurm.client.parse` requests."""
    return "\x1f".join({**_JOB, "job_id": job_id, "raw_id": job_id, **facts}.values()) + "\x1e\n"


def job_of(kind: str) -> dict[str, str] | None:
    """Return Slurm's record of the job of a run of this kind; None if Slurm has none."""
    now = datetime.now().isoformat(timespec="seconds")
    return {
        "running": {"state": "RUNNING", "reason": "None", "started": now, "hosts": "node[01-02]"},
        "pending": {"state": "PENDING", "reason": "Priority"},
        "requeued": {"state": "PENDING", "reason": "BeginTime", "restarts": "1", "started": now},
        "cancelled": {"state": "CANCELLED", "reason": "None"},
        "failed": {"state": "FAILED", "reason": "NonZeroExitCode"},
    }.get(kind)


def make_run(parent: Path, run_id: str, kind: str, job_id: str) -> RunDir:
    """Make the folder of one run with the files that `stk status` reads."""
    run, now = RunDir(parent / run_id), time.time()
    for folder in (run.checkpoints, run.code, run.logs, run.report, run.tensorboard, run.submitit):
        folder.mkdir(parents=True)
    run.config.write_text("name: study\n")
    run.job.write_text("nodes: 2\ntasks_per_node: 4\ngres: gpu:4\ngpus_per_node: null\ngroups: []\n")
    facts = {"cluster": "slurm", "job_id": job_id, "host": "login", "name": f"{run_id}.0", "time": now - 9000}
    append_json_line(run.submissions, {**facts, "user": "ada", "world_size": 8})
    if kind == "pending":
        return run
    for file in (run.metrics, run.events, run.step_records, run.alive, run.fence):
        file.touch()
    starts = 3 if kind in ("finished", "requeued") else 1
    for number in range(1, starts + 1):
        append_json_line(run.attempts, _start(number, job_id, now, is_open=kind == "running"))
    run.progress.write_text(json.dumps(_progress(now), indent=2))
    if kind == "finished":
        run.result.write_text(json.dumps(_result(), indent=2))
    elif kind == "failed":
        run.failure.write_text(json.dumps(_failure(now), indent=2))
    elif kind == "running":
        beat = {"rank": 0, "host": "node01", "time": now, "phase": "forward", "step": 4000, "still_s": 0.1}
        run.heartbeat(f"{job_id}.0.0", 0).parent.mkdir()
        run.heartbeat(f"{job_id}.0.0", 0).write_text(json.dumps({**beat, "limit_s": 600.0}))
    return run


def _start(number: int, job_id: str, now: float, *, is_open: bool) -> dict[str, Any]:
    begun = now - 8000 + 2000 * number
    line: dict[str, Any] = {
        "attempt": number,
        "job_id": job_id,
        "restart": number - 1,
        "nonce": f"{job_id}.0.{number - 1}",
        "hosts": ["node01", "node02"],
        "world_size": 8,
        "time_start": begun,
        "device": "cuda",
        "first_step": 1300 * (number - 1),
        "resumed": number > 1,
        "first_step_s": 21.4,
        "first_step_after_start_s": 18.2,
    }
    if is_open:
        return line
    ended = {"time_end": begun + 1800, "last_step": 1300 * number, "why": "preempted", "step_s": 1.3}
    return {**line, **ended, "save_s": 0.09, "signals": [["SIGTERM", begun + 1790]]}


def _progress(now: float) -> dict[str, Any]:
    metrics = {
        "train_loss": 0.4321,
        "train_samples_per_s": 812.5,
        "train_tokens_per_s": 104321.7,
        "validation_loss": 0.5012,
        "validation_accuracy": 0.8731,
        "validation_macro_f1": 0.8544,
    }
    return {"time": now, "step": 4000, "total_steps": STEPS, "epoch": 8.0, "metrics": metrics}


def _result() -> dict[str, Any]:
    scores = {"loss": 0.4, "accuracy": 0.91, "macro_f1": 0.90, "weighted_f1": 0.91, "mcc": 0.85}
    train = {"loss": 0.31, "lr": 1e-6, "grad_norm": 0.8, "samples_per_s": 812.5, "tokens_per_s": 104321.7}
    return {
        "state": "finished",
        "step": STEPS,
        "epoch": 10.0,
        "metrics": {"train": train, "validation": scores, "test": scores},
        "best": {"step": 4500, "metric": "accuracy:max", "value": 0.91},
        "attempts": 3,
        "seconds": 5400.0,
    }


def _failure(now: float) -> dict[str, Any]:
    return {
        "time": now,
        "nonce": "x",
        "rank": 3,
        "host": "node02",
        "phase": "forward",
        "step": 4000,
        "class": "out_of_memory",
        "message": "CUDA out of memory. Tried to allocate 2.25 GiB.",
        "advice": "Ask for more memory.",
        "traceback": "Traceback (most recent call last):\n" + 30 * '  File "model.py", line 88, in forward\n',
    }
