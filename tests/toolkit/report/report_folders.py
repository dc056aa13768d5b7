"""Made-up run folders, as the worker leaves them behind."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.artifacts.evaluation import write_evaluation
from toolkit.artifacts.predictions import Predictions
from toolkit.artifacts.scores import write_labels
from toolkit.artifacts.slices import SliceRow, write_slices
from toolkit.files import append_json_line, write_json
from toolkit.metrics.slice_score import SliceScore
from toolkit.rundir import RunDir

STEPS_PER_EPOCH = 100
START_S = 1_780_000_000.0


def write_config(run: RunDir, **changes: Any) -> None:
    values = {"lr": 0.001, "metric": "accuracy:max", "epochs": 3} | changes
    run.path.mkdir(parents=True, exist_ok=True)
    run.config.write_text(
        f"name: sst2\nseed: 7\ntrain:\n  epochs: {values['epochs']}\n"
        f"optimizer:\n  lr: {values['lr']}\nevaluation:\n  metric: {values['metric']}\n"
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
    first = {"attempt": 0, "job_id": "4711", "restart": 0, "world_size": 4, "device": "cuda"}
    append_json_line(
        run.attempts, {**first, "hosts": ["node01", "node02"], "time_start": START_S, "first_step": 0}
    )
    end = {
        "attempt": 0,
        "first_step_after_start_s": 12.0,
        "time_end": START_S + 150,
        "last_step": 150,
        "why": "SIGTERM: preempted",
    }
    append_json_line(run.attempts, end)
    second = {"attempt": 1, "job_id": "4711", "restart": 1, "world_size": 2, "device": "cuda"}
    append_json_line(
        run.attempts, {**second, "hosts": ["node07"], "time_start": START_S + 200, "first_step": 140}
    )
    append_json_line(run.attempts, {"attempt": 1, "first_step_after_start_s": 10.0})
    if finished:
        end = {"attempt": 1, "time_end": START_S + 350, "last_step": 300, "why": "finished"}
        append_json_line(run.attempts, end)


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


def write_classes(run: RunDir, labels: Sequence[str], split: str = "test") -> list[list[int]]:
    """Write the scores of a confusion matrix in which each class is taken for the next one at times."""
    run.artifacts.mkdir(exist_ok=True)
    size = len(labels)
    confusion = [[0] * size for _ in labels]
    for row in range(size):
        confusion[row][row] = 40 + row
        confusion[row][(row + 1) % size] += 7 + row
    classes: list[dict[str, Any]] = []
    for index, label in enumerate(labels):
        right = confusion[index][index]
        precision = right / sum(row[index] for row in confusion)
        recall = right / sum(confusion[index])
        f1 = 2 * precision * recall / (precision + recall)
        support = sum(confusion[index])
        classes.append(
            {"label": label, "precision": precision, "recall": recall, "f1": f1, "support": support}
        )
    names = ("precision", "recall", "f1")
    macros = {f"macro_{name}": sum(row[name] for row in classes) / size for name in names}
    document = {"labels": list(labels), "confusion": confusion, "classes": classes, "accuracy": 0.8, **macros}
    write_json(run.classes(split), document)
    return confusion


def write_predictions(run: RunDir, rows: Sequence[Sequence[Any]], split: str = "test") -> None:
    """Write rows of prediction, target, log-probabilities and text as the worker does."""
    run.artifacts.mkdir(parents=True, exist_ok=True)
    with open(run.predictions(split), "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(["prediction", "target", "score", "row_index", "text"])
        for index, (prediction, target, score, text) in enumerate(rows):
            writer.writerow([prediction, target, json.dumps(score), index, text])


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
    run = RunDir(path)
    write_config(run, **config)
    write_metrics(run)
    write_attempts(run)
    append_json_line(run.events, {"time": START_S + 100, "event": "save", "step": 100})
    write_classes(run, labels)
    first, second = labels[0], labels[1]
    rest = [-9.0] * (len(labels) - 2)
    write_predictions(
        run,
        [
            (first, first, [-0.01, -4.6, *rest], "rightly found"),
            (second, first, [-1.2, -0.36, *rest], "a little unsure"),
            (first, second, [-0.02, -3.9, *rest], "surely <b>wrong</b> & sorry"),
        ],
    )
    write_result(run)
    return run


def write_classified(run: RunDir, labels: Sequence[str], texts: int = 300, folded: bool = True) -> None:
    """Write what a finished evaluation of validation and test leaves, and the distribution of labels.

    Rarer towards the last label; where folded, every third text is in three fragments. The model is right
    about four times in five.
    """
    generator = np.random.default_rng(len(labels))
    shares = np.linspace(2, 1, len(labels)) / np.linspace(2, 1, len(labels)).sum()
    fragments = np.where(np.arange(texts) % 3 == 0, 3 if folded else 1, 1)
    splits = {}
    for split in ("train", "validation", "test"):
        codes = np.repeat(generator.choice(len(labels), texts, p=shares), fragments)
        text_ids = np.repeat(np.arange(texts), fragments)
        splits[split] = (codes, text_ids)
        if split == "train":
            continue
        scores = generator.normal(0, 1, (len(codes), len(labels)))
        scores[np.arange(len(codes)), codes] += 0.9 + 0.8 * math.log(len(labels))
        log_probabilities = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        made = Predictions.of_samples(
            split, tuple(labels), codes, log_probabilities, np.arange(len(codes)), text_ids
        )
        write_evaluation(
            run,
            made,
            root="mails",
            pooling="mean",
            texts=lambda rows: [f"fragment {row} of a mail that was folded" for row in rows],
            sources=lambda ids: [f"the whole mail {text}" for text in ids],
        )
    write_labels(run, labels, splits)


#: Of the slices of a made-up disambiguation: mentions, right, right by popularity.
SLICES = {
    "unif_all": (2000, 1500, 700),
    "unif_NS_HD": (400, 390, 380),
    "unif_NS_TL": (900, 540, 90),
    "unif_NS_TS": (0, 0, 0),
    "final_loss": (2000, 1500, 700),
}


def write_disambiguation(path: Path, *, outside: int = 0, test: bool = True, gain: int = 0) -> RunDir:
    """Write a finished run of entity disambiguation, scored by slices in every epoch.

    outside  mentions of the whole whose gold is none of the candidates
    gain     mentions of the whole that it has right besides
    """
    run = RunDir(path)
    write_config(run, metric="accuracy/unif_NS_TL:max")
    for step in (100, 200, 300):
        head = {"time": START_S + step, "step": step, "epoch": step / 100}
        training = {"loss": 2 / step, "accuracy": step / 400, "samples_per_s": 3.0}
        append_json_line(run.metrics, {**head, "split": "train", **training})
        of_slices = {
            f"accuracy/{name}": right / mentions * step / 300 if mentions else 0.0
            for name, (mentions, right, _) in SLICES.items()
        }
        scores = {"loss": 3 / step, "accuracy": 0.75 * step / 300, "popularity": 0.35}
        append_json_line(run.metrics, {**head, "split": "validation", **scores, **of_slices})
    write_attempts(run)
    splits = ("validation", "test") if test else ("validation",)
    for split in splits:
        write_slices(run, split, _slice_rows(outside, gain), dataset="usage", no_candidate=False)
    metrics = {split: {"loss": 0.01, "accuracy": 0.75, "popularity": 0.35, **of_slices} for split in splits}
    best = {"step": 300, "metric": "accuracy/unif_NS_TL:max", "value": 0.6}
    result = {"state": "finished", "step": 300, "epoch": 3.0, "attempts": 2, "seconds": 300.5}
    write_json(run.result, {**result, "metrics": metrics, "best": best})
    return run


def _slice_rows(outside: int, gain: int) -> list[SliceRow]:
    rows = []
    for name, (mentions, right, popular) in SLICES.items():
        is_whole = name in ("unif_all", "final_loss")
        inside = mentions - outside * is_whole
        correct = right + gain * is_whole
        score = SliceScore(
            mentions=mentions,
            mentions_not_nc=inside,
            correct=correct,
            correct_not_nc=correct,
            popular=popular,
            popular_not_nc=popular,
        )
        rows.append(SliceRow(name=name, scores=score))
    return rows
