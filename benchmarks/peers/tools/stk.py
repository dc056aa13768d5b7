"""This project in the comparison: submitted with `stk submit`, read from its run folder.

Model, data and step time are like those of the other tools, but not the same code. The steps come from
metrics.jsonl, one line each. A restart drops the lines of repeated steps, after the driver has read them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shlex
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from cluster import command
from jobs.settings import BATCH_PER_RANK, RANKS, SAMPLES, SAVE_EVERY, SEED, STEPS, WARNING_S

from toolkit.run.attempts.goodput import timeline
from toolkit.run.run_dir import RunDir
from toolkit.system.processes import process_start_time
from tools.start import Start
from tools.tool import Step, Submission, json_lines

_BATCH = BATCH_PER_RANK * RANKS
_STEPS_PER_EPOCH = SAMPLES // _BATCH


class Stk:
    """slurm-toolkit, as installed with the driver's Python, or on PATH."""

    name = "stk"
    label = "slurm-toolkit"

    #: The value of `resources.requeue`.
    requeue = "auto"

    def __init__(self) -> None:
        # Start time of rank 0, by the nonce of the start.
        self._began: dict[str, float] = {}

    def submit(self, submission: Submission) -> str:
        """Submit the run, or resume it if it exists, as a user would; return the job id."""
        folder = submission.folder
        environment = {
            "STK_EXPERIMENT_DIR": str(folder / "runs"),
            "STK_FAULTS": _pace(submission.step_ms),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        if (run := run_of(folder)).exists():
            words = ["resume", run.name]
        else:
            _write_texts(folder / "train.tsv", SAMPLES)
            _write_texts(folder / "validation.tsv", _BATCH)
            (folder / "experiment.yaml").write_text(_experiment(submission, self.requeue))
            words = ["submit", str(folder / "experiment.yaml")]
        return str(json.loads(command("stk", *words, "--json", env=environment))["job_id"])

    def current_job(self, folder: Path, job_id: str) -> str:
        """Return the newest submission: before a time limit, a new job continues the run."""
        return newest_job(folder, job_id)

    def steps(self, folder: Path) -> list[Step]:
        run = run_of(folder)
        starts = [line["time_start"] for line in json_lines(run / "attempts.jsonl")]
        return [
            Step(
                step=line["step"], time=line["time"], start=str(sum(line["time"] > start for start in starts))
            )
            for line in json_lines(run / "metrics.jsonl")
            if line["split"] == "train"
        ]

    def ranks(self, folder: Path) -> dict[int, int]:
        run = run_of(folder)
        newest = json_lines(run / "attempts.jsonl")[-1]["nonce"]
        return {line["rank"]: line["pid"] for line in json_lines(run / "ranks" / f"{newest}.jsonl")}

    def starts(self, folder: Path) -> list[Start]:
        """Return the starts from attempts.jsonl and /proc; call it while they run."""
        run = RunDir(run_of(folder))
        events = json_lines(run.events)
        times = {each.attempt: each for each in timeline(run, time.time())}
        lines = json_lines(run.attempts)
        return [
            self._start(run, line, number, times[line["attempt"]].saves, events)
            for number, line in enumerate(lines, start=1)
            if line["attempt"] in times
        ]

    def _start(
        self, run: RunDir, line: dict[str, Any], number: int, saves: Any, events: list[dict[str, Any]]
    ) -> Start:
        ranks, began = run.ranks(line["nonce"]), line["time_start"]
        met = ranks.stat().st_mtime if ranks.exists() else None
        if met is not None and line["nonce"] not in self._began:
            pid = next(rank["pid"] for rank in json_lines(ranks) if rank["rank"] == 0)
            with suppress(OSError):
                self._began[line["nonce"]] = process_start_time(pid)
        # The first event `fault` is the first forward pass: see _pace.
        loaded = (each["time"] for each in events if each["event"] == "fault" and each["time"] > began)
        return Start(
            name=str(number),
            began=self._began.get(line["nonce"], began),
            imported=began,
            met=met,
            loaded=next(loaded, None),
            saves=saves,
        )

    def checkpoints(self, folder: Path) -> Path:
        return run_of(folder) / "checkpoints"

    def damageable(self, folder: Path) -> Path:
        return self._newest(folder) / "model.safetensors"

    def drop_newest(self, folder: Path) -> None:
        shutil.rmtree(self._newest(folder))

    def digest(self, folder: Path) -> str | None:
        run = run_of(folder)
        if not (run / "result.json").exists():
            return None
        return hashlib.sha256((run / "checkpoints/last/model.safetensors").read_bytes()).hexdigest()

    def _newest(self, folder: Path) -> Path:
        return max(self.checkpoints(folder).glob("step_*"))


class StkSameJob(Stk):
    """slurm-toolkit with `requeue: same_job`: after a crash the same job is requeued."""

    name, requeue = "stk-same-job", "same_job"
    label = "slurm-toolkit, same job"


def run_of(folder: Path) -> Path:
    """Return the run's folder; before it is made, a path that does not exist."""
    return next((config.parent for config in (folder / "runs").glob("*/config.yaml")), folder / "no-run")


def newest_job(folder: Path, job_id: str) -> str:
    """Return the job that was submitted last, or `job_id` before the run has a folder."""
    submissions = json_lines(run_of(folder) / "submissions.jsonl")
    return str(submissions[-1]["job_id"]) if submissions else job_id


def _experiment(submission: Submission, requeue: str) -> str:
    """Return the experiment as JSON, which is valid YAML."""
    experiment: dict[str, Any] = {
        "name": "peers",
        "seed": SEED,
        "task": {"kind": "text_classification"},
        "model": {"kind": "docnn", "embedding_dim": 128, "kernels": [3], "filters": 128, "dropout": 0.1},
        "data": {
            "train": str(submission.folder / "train.tsv"),
            "validation": str(submission.folder / "validation.tsv"),
            "prepared_dir": str(submission.folder / "prepared"),
        },
        "train": {
            "epochs": STEPS // _STEPS_PER_EPOCH,
            "batch_size": _BATCH,
            "log_per_epoch": _STEPS_PER_EPOCH,
            # The same number of micro-batches as in other tools.
            "logical_ranks": RANKS,
        },
        "checkpoint": {"every_steps": SAVE_EVERY},
        "resources": {
            "tasks_per_node": RANKS,
            "partition": submission.partition,
            "time": str(submission.minutes),
            "signal_s": WARNING_S,
            "exclusive": True,
            "max_crashes": 1000,
            "requeue": requeue,
            "setup": [f"date +%s.%N >> {shlex.quote(str(submission.folder))}/launches"],
        },
    }
    return json.dumps(experiment, indent=1)


def _write_texts(file: Path, count: int) -> None:
    """Write random texts like those of workload.Texts."""
    choice = random.Random(f"{SEED} {file.name}")
    lines = ["text\tlabel"]
    for _ in range(count):
        words = [choice.randrange(4000) for _ in range(32)]
        label = "large" if sum(words) > 2000 * 32 else "small"
        lines.append(" ".join(f"w{word}" for word in words) + f"\t{label}")
    file.write_text("\n".join(lines) + "\n")


def _pace(step_ms: int) -> str:
    """Return a fault that makes every step take at least `step_ms`: `slow` in each forward pass."""
    return f"slow {step_ms / 1000} at=forward"
