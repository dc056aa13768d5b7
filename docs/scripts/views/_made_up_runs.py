"""Made-up run folders, as the worker writes them: six runs on a cluster that preempts jobs."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import yaml

from toolkit.files import append_json_line, write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles

LABELS = ("business", "science", "sports", "world")
_BEGAN_S = 1_780_000_000.0
_STEPS, _STEPS_PER_S = 6000, 0.55
_RANKS = 2
#: For each attempt: seconds of training until it was stopped, and seconds of waiting before it.
_STOPS = ((1500.0, 4200.0), (2900.0, 0.0), (4200.0, 1500.0))


def make_runs(folder: Path) -> list[RunDir]:
    """Make two settings with three seeds each."""
    return [
        make_run(folder / f"news-{kind}{seed}", learning_rate, seed)
        for kind, learning_rate in (("4be1", 0.001), ("90c7", 0.0003))
        for seed in (1, 2, 3)
    ]


def make_run(path: Path, learning_rate: float, seed: int) -> RunDir:
    """Make one finished run with three attempts, two GPUs and half of its memory unused."""
    run, luck = RunDir(path), random.Random(f"{learning_rate} {seed}")
    path.mkdir(parents=True)
    _write_config(run, learning_rate, seed)
    _write_attempts(run, luck)
    _write_metrics(run, learning_rate, luck)
    _write_result(run, learning_rate, luck)
    return run


def _write_config(run: RunDir, learning_rate: float, seed: int) -> None:
    resources = {"nodes": 1, "tasks_per_node": _RANKS, "gres": "gpu:a100:2", "cpus_per_task": 8}
    resources |= {"mem": "64G", "time": "08:00:00", "partition": "preemptible"}
    config = {
        "name": "news",
        "seed": seed,
        "task": {"kind": "text_classification"},
        "model": {"kind": "text_cnn", "kernels": [3, 4, 5]},
        "data": {"file": "news.csv"},
        "train": {"epochs": 6, "batch_size": 256},
        "optimizer": {"lr": learning_rate, "weight_decay": 0.01},
        "evaluation": {"metric": "accuracy:max"},
        "resources": resources,
    }
    run.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    run.job.write_text(yaml.safe_dump(resources), encoding="utf-8")
    line = {"cluster": "slurm", "job_id": "48113", "host": "login1", "name": run.run_id}
    append_json_line(run.submissions, {**line, "time": _BEGAN_S - 2400})


def _write_attempts(run: RunDir, luck: random.Random) -> None:
    clock, step = _BEGAN_S, 0
    for number, (trained_s, waited_s) in enumerate(_STOPS, start=1):
        clock += waited_s * luck.uniform(0.7, 1.3) if number > 1 else 0.0
        last = number == len(_STOPS)
        reached = _STEPS if last else step + int(trained_s * luck.uniform(0.8, 1.2) * _STEPS_PER_S)
        ready_s = luck.uniform(60, 110)
        end = clock + ready_s + (reached - step) / _STEPS_PER_S
        killed = number == 2
        line = {"attempt": number, "job_id": "48113", "restart": number - 1, "nonce": f"48113-{number - 1}"}
        line |= {"hosts": [f"gpu{luck.randrange(1, 9):02d}"], "world_size": _RANKS, "device": "cuda"}
        line |= {"time_start": clock, "first_step": step, "first_step_after_start_s": ready_s}
        why = "finished" if last else "requeued" if killed else "preempted"
        line |= {"time_end": end, "last_step": reached, "why": why}
        append_json_line(run.attempts, line)
        _write_saves(run, clock + ready_s, end)
        _write_usage(run, line, luck)
        # Killed without a warning: the steps since the last save are lost.
        step = reached - 320 if killed else reached
        clock = end


def _write_saves(run: RunDir, begin: float, end: float) -> None:
    for number in range(1, int((end - begin) / 600) + 1):
        save = {"event": "save", "stall_s": 9.0, "waited_s": 0.0, "write_s": 20.0}
        append_json_line(run.events, {"time": begin + 600 * number, **save})


def _write_usage(run: RunDir, line: dict[str, object], luck: random.Random) -> None:
    begin, end = float(str(line["time_start"])), float(str(line["time_end"]))
    nonce = str(line["nonce"])
    for rank in range(_RANKS):
        history = []
        for point in range(100):
            ready = min(1.0, point / 4)
            utilization = ready * (46 - 20 * rank + luck.uniform(-8, 8))
            memory = 9000 + 3500 * ready + 10 * point + 300 * rank
            cpu = 100 + ready * luck.uniform(40, 90)
            gpu_memory = 900 + ready * 21000
            history.append([begin + (end - begin) * point / 99, memory, cpu, utilization, gpu_memory])
        gpu = {"name": "NVIDIA A100-SXM4-40GB", "uuid": f"GPU-{rank}", "utilization": 41.0}
        gpu |= {"utilization_mean": 44.0 - 20 * rank, "memory_mb": 21900.0}
        gpu |= {"memory_peak_mb": 21900.0, "memory_total_mb": 40960.0}
        document = {
            "time": end,
            "nonce": nonce,
            "rank": rank,
            "host": line["hosts"][0],
            "device": f"cuda:{rank}",
        }  # type: ignore[index]
        document |= {
            "samples": 900,
            "seconds": end - begin,
            "rss_mb": 13400.0,
            "rss_peak_mb": 13500.0 + 300 * rank,
        }
        document |= {"cpu_percent": 160.0, "cpu_percent_mean": 162.0, "cpus": 8, "memory_limit_mb": 65536.0}
        run.usage(nonce, rank).parent.mkdir(exist_ok=True)
        write_json(run.usage(nonce, rank), {**document, "gpu": gpu, "history": history})


def _write_metrics(run: RunDir, learning_rate: float, luck: random.Random) -> None:
    fast = learning_rate == 0.001
    floor = luck.gauss(0.31 if fast else 0.37, 0.008)
    for step in range(50, _STEPS + 1, 50):
        loss = floor - 0.08 + 1.05 * math.exp(-step / (900 if fast else 1700)) + luck.gauss(0, 0.012)
        head = {"time": _BEGAN_S + step / _STEPS_PER_S, "step": step, "epoch": step / 1000}
        rates = {"lr": learning_rate * (1 - step / _STEPS), "samples_per_s": 140.8, "tokens_per_s": 27000.0}
        append_json_line(
            run.metrics, {**head, "split": "train", "loss": loss, "accuracy": 1 - loss / 2.1, **rates}
        )
        if step % 500 == 0:
            loss = floor + 0.95 * math.exp(-step / (800 if fast else 1500)) + luck.gauss(0, 0.004)
            scores = {"loss": loss, "accuracy": 1.03 - loss / 2.2, "macro_f1": 1.02 - loss / 2.2}
            append_json_line(run.metrics, {**head, "split": "validation", **scores})


def _write_result(run: RunDir, learning_rate: float, luck: random.Random) -> None:
    right = luck.gauss(905 if learning_rate == 0.001 else 878, 4)
    confusion = [[int(luck.gauss((1000 - right) / 3, 6)) for _ in LABELS] for _ in LABELS]
    for row, counts in enumerate(confusion):
        counts[row] = 1000 - sum(counts) + counts[row]
    scores = _scores(confusion)
    classes = {"labels": LABELS, "confusion": confusion, **scores}
    run.artifacts.mkdir()
    write_json(ClassificationFiles(run).classes("test"), classes)
    overall = {name: scores[name] for name in ("accuracy", "macro_f1")}
    test = {"loss": 2.2 * (1.03 - float(str(scores["accuracy"]))), **overall}
    best = {"step": 6000, "metric": "accuracy", "value": test["accuracy"]}
    result = {"state": "finished", "step": _STEPS, "epoch": 6.0, "attempts": len(_STOPS), "seconds": 11500.0}
    write_json(run.result, {**result, "metrics": {"validation": test, "test": test}, "best": best})


def _scores(confusion: list[list[int]]) -> dict[str, object]:
    rows = []
    for place, label in enumerate(LABELS):
        right = confusion[place][place]
        precision = right / sum(row[place] for row in confusion)
        recall = right / sum(confusion[place])
        f1 = 2 * precision * recall / (precision + recall)
        rows.append({"label": label, "precision": precision, "recall": recall, "f1": f1, "support": 1000})
    means = {
        f"macro_{name}": sum(float(str(row[name])) for row in rows) / len(rows)
        for name in ("precision", "recall", "f1")
    }
    right = sum(confusion[place][place] for place in range(len(LABELS)))
    return json.loads(json.dumps({"classes": rows, "accuracy": right / sum(map(sum, confusion)), **means}))
