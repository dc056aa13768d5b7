"""Run folders of text classification, as a worker writes them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.toolkit.report import report_folders
from tests.toolkit.workloads.text_classification.artifacts.made import predictions
from toolkit.files import write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.artifacts.evaluation import write_evaluation
from toolkit.workloads.text_classification.artifacts.scores import write_labels
from toolkit.workloads.text_classification.files import ClassificationFiles
from toolkit.workloads.text_classification.metrics.class_scores import Classification

KIND = "text_classification"


def write_classes(run: RunDir, labels: Sequence[str], split: str = "test") -> None:
    """Write the scores of a confusion matrix with errors between each class and the next.

    They are what the first version wrote: no averages by weight and no correlation.
    """
    run.artifacts.mkdir(exist_ok=True)
    codes = np.arange(len(labels))
    right, wrong = np.repeat(codes, 40 + codes), np.repeat(codes, 7 + codes)
    truth, predicted = np.append(right, wrong), np.append(right, (wrong + 1) % len(labels))
    scores = Classification.of(tuple(labels), truth, predicted)
    names = ("label", "precision", "recall", "f1", "support")
    classes = [{name: getattr(each, name) for name in names} for each in scores.classes()]
    matrix = {"labels": list(labels), "confusion": scores.confusion.tolist(), "classes": classes}
    write_json(ClassificationFiles(run).classes(split), {**matrix, "accuracy": 0.8, **scores.macro()})


def write_predictions(run: RunDir, rows: Sequence[Sequence[Any]], split: str = "test") -> None:
    """Write rows of prediction, target, log-probabilities and text as the worker does."""
    run.artifacts.mkdir(parents=True, exist_ok=True)
    with open(ClassificationFiles(run).predictions(split), "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(["prediction", "target", "score", "row_index", "text"])
        for index, (prediction, target, score, text) in enumerate(rows):
            writer.writerow([prediction, target, json.dumps(score), index, text])


def write_classified(run: RunDir, labels: Sequence[str], texts: int = 300, folded: bool = True) -> None:
    """Write the files of the final evaluation of validation and test, and the distribution of labels.

    Later labels are rarer. If folded, every third text has three fragments. About four of five predictions
    are right.
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
        probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        named: dict[str, Any] = {"split": split, "labels": tuple(labels), "text_ids": text_ids.tolist()}
        write_evaluation(
            run,
            predictions(probabilities.tolist(), codes.tolist(), **named),
            root="mails",
            pooling="mean",
            texts=lambda rows: [f"fragment {row} of a mail that was folded" for row in rows],
            sources=lambda ids: [f"the whole mail {text}" for text in ids],
        )
    write_labels(run, labels, splits)


def write_finished(path: Path, labels: Sequence[str] = ("negative", "positive"), **config: Any) -> RunDir:
    """Write a finished run with one preemption and two mistakes on the test set."""
    run = report_folders.write_trained(path, **{"kind": KIND, **config})
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
    return run
