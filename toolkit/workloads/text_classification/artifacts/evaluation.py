"""Write all files of the final evaluation of one split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolkit.files import read_json_lines, write_json
from toolkit.run.records.epoch_metrics import by_epoch
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.artifacts.prediction_tables import (
    Texts,
    write_predictions,
    write_testset_predictions,
)
from toolkit.workloads.text_classification.artifacts.predictions import Predictions
from toolkit.workloads.text_classification.artifacts.scores import write_classes, write_curves
from toolkit.workloads.text_classification.files import ClassificationFiles

_TEST = "test"


def write_evaluation(
    run: RunDir, predictions: Predictions, *, root: str, pooling: str, texts: Texts, sources: Texts
) -> None:
    """Write the files of a split: for its samples and, if texts were folded, also for whole texts.

    root     beginning of some file names: the name of the data file without its suffix
    pooling  mean or max
    texts    returns the texts of samples, by position in the split
    sources  returns whole texts, by id
    """
    run.artifacts.mkdir(parents=True, exist_ok=True)
    levels = [predictions]
    _write_level(run, predictions, root, texts)
    if predictions.folded:
        whole = predictions.of_texts(pooling)
        levels.append(whole)
        _write_level(run, whole, root, lambda rows: sources(whole.text_ids[rows]))
    if predictions.split == _TEST or not ClassificationFiles(run).train_test_stats(root).exists():
        write_train_test_stats(run, root, levels)


def write_train_test_stats(run: RunDir, root: str, levels: Iterable[Predictions]) -> None:
    """Write `<root>_train_test_stats.json`, with the keys of bert_train_parallel.

    `Testing` is empty without a test. `Testing (texts)` has the scores of whole texts if texts were folded.
    """
    testing: dict[str, Any] = {"Testing": {}}
    for predictions in levels:
        if predictions.split == _TEST:
            testing["Testing (texts)" if predictions.pooled else "Testing"] = _testing(predictions)
    training = [
        {
            "epoch": epoch.epoch,
            "Training Loss": epoch.training.get("loss"),
            "Validation Loss": epoch.validation.get("loss"),
            "Training Accuracy": epoch.training.get("accuracy"),
            "Validation Accuracy": epoch.validation.get("accuracy"),
        }
        for epoch in by_epoch(read_json_lines(run.metrics))
    ]
    write_json(ClassificationFiles(run).train_test_stats(root), {"Training": training, **testing})


def _write_level(run: RunDir, predictions: Predictions, root: str, texts: Texts) -> None:
    write_classes(run, predictions)
    write_curves(run, predictions)
    write_predictions(ClassificationFiles(run).predictions(predictions.name), predictions, texts)
    if predictions.split == _TEST:
        path = ClassificationFiles(run).testset_predictions(root, whole_texts=predictions.pooled)
        write_testset_predictions(path, predictions, texts)


def _testing(predictions: Predictions) -> dict[str, float]:
    scores = predictions.classification()
    return {
        "Test Loss": predictions.loss,
        "Test Accuracy": scores.accuracy,
        "Matthews corrcoef": scores.matthews,
    }
