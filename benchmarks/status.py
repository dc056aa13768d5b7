"""How long `stk status` takes for a thousand and for ten thousand runs.

    python -m benchmarks.status [--runs 1000 10000] [--keep FOLDER]

The runs are made up, in a mix as a busy group leaves it: most have finished, some train, wait, failed or were
cancelled. A pretend Slurm answers for the jobs, so that the time of a real controller is not in the figures;
how often it is asked is. Each figure is the best of three commands in processes of their own, imports
included: wall-clock seconds, and seconds of CPU of the command itself.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.slurm.fake_slurm import FakeSlurm
from toolkit.files import append_json_line
from toolkit.rundir import RunDir

#: Of a hundred runs.
MIX = {"finished": 70, "failed": 9, "running": 8, "pending": 6, "requeued": 3, "cancelled": 2, "purged": 2}
STEPS = 5000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--keep", type=Path, help="make the runs here, and leave them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        parent = arguments.keep or Path(temporary)
        for count in arguments.runs:
            measure(parent / str(count), count)


def measure(folder: Path, count: int) -> None:
    """Make so many runs and print what the command takes for them."""
    fake = FakeSlurm(folder / "bin")
    make_runs(folder / "experiments", count, fake)
    for words in (["status"], ["status", "--json"]):
        wall_s, cpu_s = min(_time(folder, words) for _ in range(3))
        print(f"{count:6,} runs, stk {' '.join(words):14} {wall_s:5.2f} s, {cpu_s:5.2f} s of CPU", flush=True)
    asked = [len(fake.calls(name)) for name in ("squeue", "sacct", "scontrol")]
    print(
        f"        calls a command: squeue {asked[0] / 6:g}, sacct {asked[1] / 6:g}, scontrol {asked[2] / 6:g}"
    )


def _time(folder: Path, words: list[str]) -> tuple[float, float]:
    """Wall-clock seconds and seconds of CPU of one command."""
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path, "STK_EXPERIMENT_DIR": str(folder / "experiments")}
    begun, used = time.perf_counter(), _cpu_s()
    subprocess.run(
        [sys.executable, "-m", "slurm", *words], env=environ, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - begun, _cpu_s() - used


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make_runs(parent: Path, count: int, fake: FakeSlurm) -> None:
    """Make run folders as runs leave them, and the jobs that Slurm still knows."""
    jobs: dict[str, dict[str, str]] = {}
    kinds = [kind for kind, number in MIX.items() for _ in range(number)]
    for number in range(count):
        # A step that is prime to a hundred, so that the kinds are mixed.
        kind, job_id = kinds[number * 37 % 100], str(100_000 + number)
        make_run(parent, f"study{number % 25:02d}-{number:08x}", kind, job_id)
        if (facts := job_of(kind)) is not None:
            jobs[job_id] = facts
    fake.add_all(jobs)


def job_of(kind: str) -> dict[str, str] | None:
    """What Slurm says of the job of such a run; None where it has forgotten it."""
    now = datetime.now().isoformat(timespec="seconds")
    return {
        "running": {"state": "RUNNING", "reason": "None", "started": now, "hosts": "node[01-02]"},
        "pending": {"state": "PENDING", "reason": "Priority"},
        "requeued": {"state": "PENDING", "reason": "BeginTime", "restarts": "1", "started": now},
        "cancelled": {"state": "CANCELLED", "reason": "None"},
        "failed": {"state": "FAILED", "reason": "NonZeroExitCode"},
    }.get(kind)


def make_run(parent: Path, run_id: str, kind: str, job_id: str) -> RunDir:
    """Make the folder of one run, as far as a view looks at it."""
    run, now = RunDir(parent / run_id), time.time()
    for folder in (run.checkpoints, run.code, run.logs, run.report, run.tensorboard, run.submitit):
        folder.mkdir(parents=True)
    run.config.write_text("name: study\n")
    run.job.write_text("nodes: 2\ntasks_per_node: 4\ngres: gpu:4\ngpus_per_node: null\ngroups: []\n")
    facts = {"cluster": "slurm", "job_id": job_id, "host": "login", "name": f"{run_id}.0", "time": now - 9000}
    append_json_line(run.submissions, {**facts, "user": "ada", "world_size": 8})
    if kind == "pending":
        return run
    for file in (run.metrics, run.events, run.receipts, run.alive, run.fence):
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


if __name__ == "__main__":
    main()
