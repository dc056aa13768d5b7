"""The picture of `stk watch RUN`: a made-up run on two hosts that was preempted once."""

from __future__ import annotations

import io
import json
import math
import random
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from drawing import save, terminal_page
from rich.console import Console

from slurm.runs.watching.reading import RunReader
from slurm.runs.watching.view import view
from slurm.status.rows import RunStatus
from toolkit.files import write_json
from toolkit.monitoring.usage.values import GpuUsage, Moment, RankUsage
from toolkit.run.run_dir import RunDir

COLUMNS, LINES = 108, 29
STEPS, STEP, RESUMED, PER_EPOCH = 24_000, 15_350, 6_400, 4_800
HOSTS = ("gpu01", "gpu01", "gpu04", "gpu04")
#: Seconds before now: submission, first attempt, its end, second attempt.
SUBMITTED, FIRST, STOPPED, SECOND = 9_800, 8_900, 5_600, 4_700
OLD, NEW = "48213.0.0", "48213.0.1"


def make(pictures: Path) -> None:
    """Draw the picture."""
    now = time.time()
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir(Path(folder, "bert-topics-5c41e09b"))
        write(run, now)
        scene = RunReader(run).read(row(run))
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True)
    console.print(view(scene, COLUMNS, LINES))
    save(terminal_page(console), pictures / "terminal" / "watch.png", width=1120, height=900)


def row(run: RunDir) -> RunStatus:
    return RunStatus(
        run_id=run.run_id,
        run_dir=str(run.path),
        job_id="48213",
        state="running",
        step=STEP,
        total_steps=STEPS,
        epoch=STEP / PER_EPOCH,
        restarts=1,
        is_live=True,
        doing="training",
        eta_s=4440.0,
    )


def write(run: RunDir, now: float) -> None:
    """Write the files of a run that the view reads."""
    run.logs.mkdir(parents=True)
    run.ranks(NEW).parent.mkdir()
    write_lines(run.submissions, [submission(now)])
    write_lines(run.attempts, attempts(now))
    write_lines(run.events, events(now))
    write_lines(run.metrics, metrics(now))
    write_lines(run.ranks(NEW), ranks())
    for rank in range(len(HOSTS)):
        write_json(run.heartbeat(NEW, rank), {"time": now - rank, "phase": "backward"})
        write_json(run.usage(NEW, rank), usage(rank, now).to_json())
    run.log(NEW, 0).write_text("".join(f"{line}\n" for line in log(now)))


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def submission(now: float) -> dict[str, Any]:
    names = {"job_id": "48213", "host": "login", "name": "bert-topics"}
    return {"cluster": "slurm", **names, "time": now - SUBMITTED}


def ranks() -> Iterator[dict[str, Any]]:
    for rank, host in enumerate(HOSTS):
        yield {"rank": rank, "host": host, "device": f"cuda:{rank % 2}"}


def attempts(now: float) -> list[dict[str, Any]]:
    hosts = ["gpu01", "gpu02"]
    return [
        {"attempt": 1, "job_id": "4711", "restart": 0,
         "nonce": OLD, "hosts": hosts, "time_start": now - FIRST, "time_end": now - STOPPED,
         "first_step": 0, "last_step": RESUMED, "first_step_after_start_s": 140.0, "why": "preempted"},
        {"attempt": 2, "job_id": "4711", "restart": 1,
         "nonce": NEW, "hosts": ["gpu01", "gpu04"], "time_start": now - SECOND,
         "first_step": RESUMED, "first_step_after_start_s": 95.0},
    ]  # fmt: skip


def events(now: float) -> list[dict[str, Any]]:
    moments = (8_000, 7_100, 6_200, STOPPED + 4, 3_800, 2_900, 2_000, 1_100, 200)
    return [{"time": now - before, "event": "save", "stall_s": 0.1} for before in moments]


def metrics(now: float) -> Iterator[dict[str, Any]]:
    """Yield lines of training and validation, with the pause between the two attempts."""
    noise = random.Random(7)
    for step in range(160, STEP + 1, 160):
        begun, first, last, length = (
            (FIRST - 140, 0, RESUMED, FIRST - 140 - STOPPED)
            if step <= RESUMED
            else (SECOND - 95, RESUMED, STEP, SECOND - 95)
        )
        moment = now - begun + length * (step - first) / (last - first)
        loss = 0.31 + 2.1 * math.exp(-step / 2600) + noise.gauss(0, 0.02)
        speed = 61_000 + noise.gauss(0, 900) - (9_000 if step % 4_800 < 160 else 0)
        head = {"time": moment, "step": step, "epoch": step / PER_EPOCH}
        yield {**head, "split": "train", "loss": loss, "tokens_per_s": speed}
        if step % 800 == 0:
            accuracy = 0.93 - 0.55 * math.exp(-step / 3000) + noise.gauss(0, 0.004)
            yield {**head, "split": "validation", "loss": loss + 0.05, "accuracy": accuracy}


def usage(rank: int, now: float) -> RankUsage:
    noise = random.Random(rank)
    history = tuple(
        Moment(
            time=now - SECOND + 40.0 * number,
            rss_mb=5_900.0,
            cpu_percent=110 + noise.gauss(0, 8),
            gpu_utilization=max(0.0, min(100.0, noise.gauss(94, 3))) if number > 2 else 4.0,
            gpu_memory_mb=31_400.0,
        )
        for number in range(118)
    )
    gpu = GpuUsage(
        name="NVIDIA A100-SXM4-40GB",
        uuid=f"GPU-{rank}",
        utilization=history[-1].gpu_utilization,
        utilization_mean=93.1,
        memory_mb=31_400.0 + 7 * rank,
        memory_peak_mb=33_000.0,
        memory_total_mb=40_960.0,
    )
    return RankUsage(
        time=now,
        nonce=NEW,
        rank=rank,
        host=HOSTS[rank],
        device=f"cuda:{rank % 2}",
        samples=2_350,
        seconds=4_700.0,
        rss_mb=5_900.0 + 37 * rank,
        rss_peak_mb=6_300.0,
        cpu_percent=history[-1].cpu_percent,
        cpu_percent_mean=109.0,
        cpus=8,
        memory_limit_mb=65_536.0,
        gpu=gpu,
        history=history,
    )


def log(now: float) -> Iterator[str]:
    def stamp(before: float) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now - before))

    yield f"{stamp(SECOND)},118 INFO rank 0 of 4 on gpu01, process 81233"
    yield f"{stamp(SECOND - 61)},402 INFO continues from step {RESUMED:,}"
    for before in (2_000, 1_100, 200):
        yield f"{stamp(before)},731 INFO saved step {STEP - int(before * 1.94):,} in 0.09 s"
