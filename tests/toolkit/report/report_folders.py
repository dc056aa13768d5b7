"""Made-up run folders, as the worker leaves them behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stk_toy.texts import files

from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir

STEPS_PER_EPOCH = 100
START_S = 1_780_000_000.0


def write_config(run: RunDir, **changes: Any) -> None:
    values = {"lr": 0.001, "metric": "accuracy:max", "epochs": 3, "kind": "toy_texts"} | changes
    run.path.mkdir(parents=True, exist_ok=True)
    run.config.write_text(
        f"name: sst2\nseed: 7\ntrain:\n  epochs: {values['epochs']}\n"
        f"optimizer:\n  lr: {values['lr']}\nevaluation:\n  metric: {values['metric']}\n"
        f"task:\n  kind: {values['kind']}\n"
    )


def write_metrics(run: RunDir, epochs: int = 3) -> None:
    """Ten lines of training and one of validation in each epoch; validation is best in epoch 2."""
    for step in range(10, epochs * STEPS_PER_EPOCH + 1, 10):
        epoch = step / STEPS_PER_EPOCH
        loss = 0.7 * math.exp(-epoch / 2)
        head = {"time": START_S + step, "step": step, "epoch": epoch}
        rates = {"lr": 0.001 * (1 - step / 300), "samples_per_s": 3200.0, "tokens_per_s": 61000.0}
        append_json_line(run.metrics, {**head, "split": "train", "loss": loss, "accuracy": 1 - loss, **rates})
        if step % STEPS_PER_EPOCH == 0:
            loss = 0.4 + 0.05 * (epoch - 2) ** 2
            macros = {"macro_precision": 0.81, "macro_recall": 0.8, "macro_f1": 0.805}
            scores = {"loss": loss, "accuracy": 1.2 - loss, **macros}
            append_json_line(run.metrics, {**head, "split": "validation", **scores})


def write_attempts(run: RunDir, finished: bool = True) -> None:
    """Four ranks until step 150, then, ten steps back, two on another host."""
    job = {"job_id": "4711", "device": "cuda"}
    first = {"attempt": 0, **job, "restart": 0, "world_size": 4, "hosts": ["node01", "node02"]}
    stopped = {"time_end": START_S + 150, "last_step": 150, "why": "SIGTERM: preempted"}
    second = {"attempt": 1, **job, "restart": 1, "world_size": 2, "hosts": ["node07"]}
    ended = {"time_end": START_S + 350, "last_step": 300, "why": "finished"}
    lines = [
        {**first, "time_start": START_S, "first_step": 0},
        {"attempt": 0, "first_step_after_start_s": 12.0, **stopped},
        {**second, "time_start": START_S + 200, "first_step": 140},
        {"attempt": 1, "first_step_after_start_s": 10.0},
        *([{"attempt": 1, **ended}] if finished else []),
    ]
    for line in lines:
        append_json_line(run.attempts, line)


def write_usage(run: RunDir, nonce: str, ranks: Sequence[dict[str, Any]], begin: float = START_S) -> None:
    """Write what ranks took of their machines over two minutes; each gives what differs from the usual."""
    run.ranks(nonce).parent.mkdir(parents=True, exist_ok=True)
    gpu = {"name": "A100", "uuid": "GPU-0", "utilization": 80.0, "utilization_mean": 75.0}
    gpu |= {"memory_mb": 9000.0, "memory_peak_mb": 9500.0, "memory_total_mb": 40960.0}
    for rank, changes in enumerate(ranks):
        history = [[begin + 30 * point, 1000 + point, 90.0, 75.0, 9000.0] for point in range(5)]
        usual: dict[str, Any] = {"time": begin + 120, "nonce": nonce, "rank": rank, "host": "node01"}
        usual |= {"device": f"cuda:{rank}", "samples": 24, "seconds": 120.0, "rss_mb": 2000.0}
        usual |= {"rss_peak_mb": 2048.0, "cpu_percent": 90.0, "cpu_percent_mean": 90.0, "cpus": 4}
        usual |= {"memory_limit_mb": None, "gpu": {**gpu, "uuid": f"GPU-{rank}"}, "history": history}
        write_json(run.usage(nonce, rank), usual | changes)


def write_result(run: RunDir) -> None:
    macros = {"macro_precision": 0.79, "macro_recall": 0.78, "macro_f1": 0.785}
    validation = {"loss": 0.4, "accuracy": 0.8, **macros}
    test = {"loss": 0.4312, "accuracy": 0.7912, **macros}
    result = {"state": "finished", "step": 300, "epoch": 3.0, "attempts": 2, "seconds": 300.5}
    best = {"step": 200, "metric": "accuracy", "value": 0.8}
    write_json(run.result, {**result, "metrics": {"validation": validation, "test": test}, "best": best})


def write_failure(run: RunDir, **changes: Any) -> None:
    document = {
        "rank": 3,
        "host": "node07",
        "phase": "backward",
        "step": 151,
        "class": "OutOfMemoryError",
        "message": "out of memory: 2.00 GiB wanted",
        "advice": "Raise train.accumulation.",
        "traceback": "Traceback (most recent call last):\n  loss.backward()",
    }
    write_json(run.failure, document | changes)


def write_finished(path: Path, labels: Sequence[str] = ("negative", "positive"), **config: Any) -> RunDir:
    """Write a run that came to its end after one preemption, with two mistakes on the test set."""
    run = write_trained(path, **config)
    first, second = labels[:2]
    rows = [(label, label, "rightly found") for label in labels]
    rows += [(first, second, "a little unsure"), (second, first, "surely <b>wrong</b>")]
    files.write_predictions(run, "test", [f"{label}\t{told}\t-0.1\t{text}" for label, told, text in rows])
    return run


def with_seed(run: RunDir, seed: int) -> RunDir:
    """Give the config of a run another seed."""
    run.config.write_text(run.config.read_text().replace("seed: 7", f"seed: {seed}"))
    return run


def write_trained(path: Path, **config: Any) -> RunDir:
    """Write what the core records of such a run."""
    run = RunDir(path)
    write_config(run, **config)
    write_metrics(run)
    write_attempts(run)
    append_json_line(run.events, {"time": START_S + 100, "event": "save", "step": 100})
    write_result(run)
    return run


def write_points(path: Path) -> RunDir:
    """Write a finished run of another task, whose metric is better the less it is."""
    run = RunDir(path)
    write_config(run, metric="distance:min", kind="toy_points")
    for step in (100, 200, 300):
        head = {"time": START_S + step, "step": step, "epoch": step / 100}
        append_json_line(run.metrics, {**head, "split": "train", "loss": 2 / step, "distance": 3 / step})
        append_json_line(run.metrics, {**head, "split": "validation", "loss": 3 / step, "distance": 4 / step})
    write_attempts(run)
    metrics = {split: {"loss": 0.01, "distance": 0.0133} for split in ("validation", "test")}
    best = {"step": 300, "metric": "distance:min", "value": 0.0133}
    result = {"state": "finished", "step": 300, "epoch": 3.0, "attempts": 2, "seconds": 300.5}
    write_json(run.result, {**result, "metrics": metrics, "best": best})
    return run
