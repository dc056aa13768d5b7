"""The picture of `stk status`: a table of made-up runs, read from folders like those of real runs."""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from drawing import save, terminal_page
from rich.console import Console

from slurm.status.rows import status
from slurm.status.table import table
from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir, find_runs

COLUMNS = 150
#: Fields of `squeue` in the order of slurm.client.parse.
_JOB = (
    "id", "id", "state", "reason", "restarts", "requeue", "submitted", "started", "limit", "hosts", "user",
    "partition", "dependency", "folder", "name",
)  # fmt: skip


def make(pictures: Path) -> None:
    """Store status.png."""
    with tempfile.TemporaryDirectory() as folder, _squeue(Path(folder), _runs(Path(folder))):
        rows = status(list(find_runs(Path(folder))))
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True)
    console.print("[bold green]$[/] stk status", highlight=False)
    console.print(table(rows))
    save(terminal_page(console), pictures / "terminal" / "status.png", width=1460, height=700)


def _runs(parent: Path) -> list[dict[str, str]]:
    """Make the folders, and return the fields of `squeue` for their jobs."""
    now = time.time()
    _run(
        parent,
        "bert-topics-45356e92",
        "4702",
        step=8200,
        loss=0.3127,
        scores={"accuracy": 0.9142},
        phase="forward",
    )
    _run(
        parent,
        "bert-topics-8c1f03aa",
        "4703",
        step=8200,
        loss=0.3304,
        scores={"accuracy": 0.9121},
        phase="save",
    )
    _run(parent, "bert-topics-d2e97b10", "4704_2")
    _run(
        parent,
        "bert-topics-lr3-0be7f2c4",
        "4705",
        step=3100,
        loss=0.5521,
        scores={"accuracy": 0.8710},
        starts=3,
    )
    _run(parent, "docnn-spam-5f6f5a21", "4688", step=10000, loss=0.0412, scores={"accuracy": 0.9893}, gpus=1)
    _run(
        parent,
        "docnn-spam-wide-77aa0c1d",
        "4690",
        step=1200,
        loss=0.2210,
        scores={"accuracy": 0.9512},
        ago_s=7300,
    )
    _run(parent, "ned-wordnet-19c4de00", "4710")
    _run(
        parent,
        "ned-wordnet-big-e0b8812f",
        "4699",
        step=500,
        loss=2.113,
        scores={"accuracy": 0.5120},
        phase="forward",
        silent_s=250,
    )
    _finish(parent / "docnn-spam-5f6f5a21", 0.9893)
    failure = {"time": now - 7200, "rank": 3, "host": "gpu07", "class": "out_of_memory"}
    message = "CUDA out of memory. Tried to allocate 2.25 GiB (GPU 3; 79.15 GiB total; 77.02 GiB in use)"
    write_json(RunDir(parent / "docnn-spam-wide-77aa0c1d").failure, {**failure, "message": message})
    return [
        _job("4702", "RUNNING", hosts="gpu[05-06]"),
        _job("4703", "RUNNING", hosts="gpu[01-02]"),
        _job("4704_2", "PENDING", "JobArrayTaskLimit"),
        _job("4705", "PENDING", "BeginTime", restarts="3", started=_at(now + 95)),
        _job("4690", "FAILED", "NonZeroExitCode"),
        _job("4710", "PENDING", "Resources", started=_at(now + 5400)),
        _job("4699", "RUNNING", hosts="gpu03"),
    ]


def _run(
    parent: Path,
    run_id: str,
    job_id: str,
    *,
    step: int = 0,
    loss: float = 0.0,
    scores: Mapping[str, float] | None = None,
    phase: str | None = None,
    starts: int = 1,
    gpus: int = 8,
    ago_s: float = 0.0,
    silent_s: float = 2.0,
) -> None:
    """Make one run's folder; without a step, the run waits for its first attempt."""
    run, now = RunDir(parent / run_id), time.time() - ago_s
    run.path.mkdir()
    run.config.write_text("name: made up\n")
    run.job.write_text("gres: gpu:4\n")
    submission = {"cluster": "slurm", "job_id": job_id, "host": "login", "name": run_id, "time": now - 9000}
    append_json_line(run.submissions, submission)
    if not step:
        return
    for number in range(starts):
        is_open = phase is not None and number == starts - 1
        append_json_line(run.attempts, _start(number, job_id, step, starts, gpus, now, is_open=is_open))
    metrics = {"train_loss": loss, "train_tokens_per_s": 23150.0 * gpus}
    metrics |= {f"validation_{name}": value for name, value in (scores or {}).items()}
    progress = {
        "time": now - silent_s - 1,
        "step": step,
        "total_steps": 10000,
        "epoch": step / 1000,
        "metrics": metrics,
    }
    write_json(run.progress, progress)
    if phase is not None:
        beat = {
            "time": time.time() - silent_s,
            "phase": phase,
            "still_s": 0.1,
            "limit_s": 600,
            "host": "gpu05",
        }
        path = run.heartbeat(f"{job_id}.0.{starts - 1}", 0)
        path.parent.mkdir()
        write_json(path, beat)


def _start(
    number: int, job_id: str, step: int, starts: int, gpus: int, now: float, *, is_open: bool
) -> dict[str, Any]:
    begun = now - 8000 + number * 8000 / starts
    line = {
        "attempt": number + 1,
        "job_id": job_id,
        "restart": number,
        "nonce": f"{job_id}.0.{number}",
        "hosts": ["gpu05", "gpu06"] if gpus > 1 else ["gpu11"],
        "world_size": gpus,
        "device": "cuda",
        "time_start": begun,
        "first_step": number * step // starts,
        "first_step_after_start_s": 15.0,
    }
    if is_open:
        return line
    end = {"time_end": begun + 7000 / starts, "last_step": (number + 1) * step // starts, "why": "preempted"}
    return {**line, **end}


def _finish(folder: Path, accuracy: float) -> None:
    run = RunDir(folder)
    progress = json.loads(run.progress.read_text())
    metrics = {
        "train": {"loss": 0.0412, "tokens_per_s": 23150.0},
        "validation": {"loss": 0.05, "accuracy": accuracy},
    }
    result = {"state": "finished", "step": progress["step"], "epoch": progress["epoch"], "metrics": metrics}
    write_json(run.result, result)


def _at(moment: float) -> str:
    return datetime.fromtimestamp(moment).isoformat(timespec="seconds")


def _job(job_id: str, state: str, reason: str = "None", **facts: str) -> dict[str, str]:
    job = dict.fromkeys(_JOB, "") | {"id": job_id, "state": state, "reason": reason, "restarts": "0"}
    return job | {"submitted": "N/A", "started": "N/A", "limit": "1:00:00", "requeue": "1"} | facts


@contextmanager
def _squeue(folder: Path, jobs: list[dict[str, str]]) -> Iterator[None]:
    """Put a squeue that lists these jobs on PATH."""
    programs = folder / "programs"
    programs.mkdir()
    answer = "".join("\x1f".join(job[name] for name in _JOB) + "\x1e\n" for job in jobs)
    (programs / "answer").write_text(answer)
    (programs / "squeue").write_text(f"#!/bin/sh\ncat {programs}/answer\n")
    (programs / "squeue").chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{programs}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before
