"""Write all files of the final evaluation of one split."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.files import json_value, open_atomic, read_json_lines, write_json
from toolkit.run.records.epoch_metrics import by_epoch
from toolkit.run.run_dir import RunDir
from toolkit.system.output.csv_cells import harmless
from toolkit.workloads.text_classification.artifacts.predictions import Predictions
from toolkit.workloads.text_classification.artifacts.scores import write_classes, write_curves
from toolkit.workloads.text_classification.files import ClassificationFiles

#: Returns the texts of rows, given by position.
Texts = Callable[[npt.NDArray[np.int64]], Sequence[str]]

_ROWS_AT_ONCE = 512
_DIGITS = 6
#: Replaces tabs and line ends, so that each row of the TSV is one line of the file.
_ONE_LINE = str.maketrans("\t\r\n", "   ")
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
            scores = predictions.classification()
            testing["Testing (texts)" if predictions.pooled else "Testing"] = {
                "Test Loss": predictions.loss,
                "Test Accuracy": scores.accuracy,
                "Matthews corrcoef": scores.matthews,
            }
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
    document = json_value({"Training": training, **testing})
    write_json(ClassificationFiles(run).train_test_stats(root), document)


def _write_level(run: RunDir, predictions: Predictions, root: str, texts: Texts) -> None:
    write_classes(run, predictions)
    write_curves(run, predictions)
    write_predictions(ClassificationFiles(run).predictions(predictions.name), predictions, texts)
    if predictions.split == _TEST:
        path = ClassificationFiles(run).testset_predictions(root, whole_texts=predictions.pooled)
        write_testset_predictions(path, predictions, texts)


def write_predictions(path: Path, predictions: Predictions, texts: Texts) -> None:
    """Write PyText's five columns, tab-separated; `score` has the log-probabilities of all classes."""
    labels = [_line_ends(label) for label in predictions.labels]
    with open_atomic(path) as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(["prediction", "target", "score", "row_index", "text"])
        for row, predicted, true, scores, text in _rows(predictions, predictions.log_probabilities, texts):
            shown = json.dumps(scores)
            writer.writerow([labels[predicted], labels[true], shown, row, text.translate(_ONE_LINE)])


def write_testset_predictions(path: Path, predictions: Predictions, texts: Texts) -> None:
    """Write a CSV. The first two columns are the codes of the predicted and of the true class.

    Other columns are the ids in the prepared set, the names of both classes, the probability of the
    prediction (`score`) and of each class, and the text. Cells that a spreadsheet would read as a formula
    begin with a quote.
    """
    labels = [_line_ends(label) for label in predictions.labels]
    head = ["prediction", "true_label", "text_id", "sample", "fragments", "predicted_class", "true_class"]
    with open_atomic(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*head, "score", *(f"P({label})" for label in labels), "text"])
        for row, predicted, true, scores, text in _rows(predictions, predictions.probabilities, texts):
            ids = (predictions.text_ids[row], predictions.sample_ids[row], predictions.fragments[row])
            names = (labels[predicted], labels[true])
            row_cells = [predicted, true, *ids, *names, scores[predicted], *scores, _line_ends(text)]
            writer.writerow(harmless(row_cells))


def _rows(
    predictions: Predictions, scores: npt.NDArray[np.floating], texts: Texts
) -> Iterator[tuple[int, int, int, list[float], str]]:
    """Yield for each row: position, codes of predicted and true class, rounded scores [C], and text."""
    predicted = predictions.predicted
    for start in range(0, len(predictions), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(predictions)))
        rounded: list[list[float]] = scores[rows].astype(np.float64).round(_DIGITS).tolist()
        for row, shown, text in zip(rows.tolist(), rounded, texts(rows), strict=True):
            yield row, int(predicted[row]), int(predictions.truth[row]), shown, text


def _line_ends(text: str) -> str:
    """Normalise line ends: the csv module writes a bare carriage return without quotes."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
