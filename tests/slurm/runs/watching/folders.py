"""The folder of a run that has been started twice, as a view finds it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slurm.status.rows import RunStatus
from tests.slurm.status.folders import ended, started
from tests.toolkit.report.report_folders import write_usage
from toolkit.files import write_json
from toolkit.run.run_dir import RunDir

#: Seconds since the epoch: when it was submitted, and when its two attempts began.
SUBMITTED, FIRST, SECOND = 1_000_000.0, 1_000_060.0, 1_000_300.0
NONCE = "101.0.1"

#: What `stk status` says of it.
ROW = RunStatus(
    run_id="tiny-1", run_dir="/runs/tiny-1", job_id="101", state="running", step=40, total_steps=100,
    epoch=2.0, restarts=1, is_live=True, doing="training", percent=40.0, eta_s=120.0,
)  # fmt: skip


def write_run(run: RunDir) -> None:
    """Write what a live run of two ranks has written: 2 attempts, 40 steps, one of its saves."""
    run.logs.mkdir(parents=True, exist_ok=True)
    run.ranks(NONCE).parent.mkdir(exist_ok=True)
    names = {"job_id": "101", "host": "login", "name": run.run_id}
    write_lines(run.submissions, [{"cluster": "slurm", **names, "time": SUBMITTED}])
    started(run, hosts=["c1", "c2"], time_start=FIRST, first_step_after_start_s=20.0)
    ended(run, why="preempted", time_end=FIRST + 140, last_step=20)
    started(run, 2, restart=1, hosts=["c1"], time_start=SECOND, first_step=20, first_step_after_start_s=10.0)
    write_lines(
        run.events, [{"time": FIRST + 120, "event": "save"}, {"time": FIRST + 130, "event": "requeue"}]
    )
    write_lines(run.metrics, metrics())
    write_lines(run.ranks(NONCE), [{"rank": rank, "host": "c1", "device": "cuda:0"} for rank in (0, 1)])
    for rank in (0, 1):
        write_json(run.heartbeat(NONCE, rank), {"time": SECOND + 60, "phase": "forward", "step": 40})
    gpu = {"name": "H100", "uuid": "GPU-1", "utilization": 93.0, "utilization_mean": 90.0}
    gpu |= {"memory_mb": 10_240.0, "memory_peak_mb": 10_240.0, "memory_total_mb": 81_920.0}
    used = {"host": "c1", "rss_mb": 2048.0, "cpu_percent": 150.0, "memory_limit_mb": 8192.0, "gpu": gpu}
    write_usage(run, NONCE, [used] * 2, SECOND - 60)
    run.log(NONCE, 0).write_text(
        "\x1b]0;title\x07first\n\x1b[31mred\x1b[0m and \x07loud\nold\rdrawn anew\n", newline=""
    )


def metrics() -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for step in range(2, 41, 2):
        begun = FIRST + 20 if step <= 20 else SECOND - 20
        head = {"time": begun + 2.0 * step, "step": step, "epoch": step / 20}
        lines.append({**head, "split": "train", "loss": 3.0 - step / 20, "tokens_per_s": 1000.0 + step})
        if step % 10 == 0:
            lines.append({**head, "split": "validation", "loss": 1.0, "accuracy": 0.5 + step / 100})
    return lines


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
