"""Write the scores of a split as JSON: confusion matrix, classes, curves; and the distribution of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.files import write_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.artifacts.predictions import Predictions
from toolkit.workloads.text_classification.files import ClassificationFiles
from toolkit.workloads.text_classification.metrics.ranking import LEVELS, Ranking

#: Most points of a stored curve. A plot cannot show more.
_POINTS = 400
_DIGITS = 6
#: Codes of the true labels [n], and the text of each sample [n].
LabelledSamples = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]]


def write_classes(run: RunDir, predictions: Predictions) -> None:
    """Write `<split>_classes.json`: the confusion matrix and all scores with one value per class."""
    document = predictions.classification().to_json()
    # One ranking at a time, because each has numbers for every sample.
    ranked = [_ranked(_ranking(predictions, code)) for code in range(len(predictions.labels))]
    for scores, areas in zip(document["classes"], ranked, strict=True):
        scores.update(areas)
    # With two classes, the second is the positive class. With more classes, there is no positive class.
    averaged = ranked[1:] if len(ranked) == 2 else ranked
    head = {
        "split": predictions.split,
        "level": predictions.level,
        "samples": len(predictions),
        "loss": predictions.loss,
        "roc_auc": _mean([areas["roc_auc"] for areas in averaged]),
        "average_precision": _mean([areas["average_precision"] for areas in averaged]),
    }
    write_json(ClassificationFiles(run).classes(predictions.name), {**head, **document})


def write_curves(run: RunDir, predictions: Predictions) -> None:
    """Write `<split>_curves.json` if there are two classes: ROC and precision over recall."""
    if len(predictions.labels) != 2:
        return
    ranking = _ranking(predictions, 1)
    document = {
        "split": predictions.split,
        "level": predictions.level,
        "positive": predictions.labels[1],
        "positives": ranking.positives,
        "negatives": ranking.negatives,
        **_ranked(ranking),
        "roc": _roc(ranking),
        "precision_recall": _precision_recall(ranking),
    }
    write_json(ClassificationFiles(run).curves(predictions.name), document)


def write_labels(
    run: RunDir, labels: Sequence[str], splits: Mapping[str, LabelledSamples], notes: Sequence[str] = ()
) -> None:
    """Write `labels.json`: the numbers of samples and of texts of each label in each split.

    notes   unusual properties of the data
    """
    run.artifacts.mkdir(parents=True, exist_ok=True)
    size = len(labels)
    counts = {
        split: {
            "samples": np.bincount(codes, minlength=size).tolist(),
            "texts": np.bincount(codes[np.unique(texts, return_index=True)[1]], minlength=size).tolist(),
        }
        for split, (codes, texts) in splits.items()
    }
    more = {"notes": list(notes)} if notes else {}
    write_json(ClassificationFiles(run).labels, {"labels": list(labels), "splits": counts, **more})


def _ranking(predictions: Predictions, code: int) -> Ranking:
    """Rank a class against the rest."""
    probabilities = predictions.log_probabilities[:, code]
    return Ranking.of(predictions.truth == code, np.exp(probabilities.astype(np.float64)))


def _ranked(ranking: Ranking) -> dict[str, Any]:
    return {
        "roc_auc": ranking.roc_auc,
        "average_precision": ranking.average_precision,
        "recall_at_precision": [asdict(ranking.recall_at_precision(level)) for level in LEVELS],
        "precision_at_recall": [asdict(ranking.precision_at_recall(level)) for level in LEVELS],
    }


def _roc(ranking: Ranking) -> dict[str, list[float | None]]:
    x, y = ranking.false_positive_rate, ranking.true_positive_rate
    kept = _kept(x, y)
    # No sample reaches a threshold above the first point.
    thresholds = [None, *ranking.thresholds.tolist()]
    return {
        "false_positive_rate": x[kept].round(_DIGITS).tolist(),
        "true_positive_rate": y[kept].round(_DIGITS).tolist(),
        "threshold": [thresholds[place] for place in kept],
    }


def _precision_recall(ranking: Ranking) -> dict[str, list[float]]:
    kept = _kept(ranking.recall, ranking.precision)
    return {
        "recall": ranking.recall[kept].round(_DIGITS).tolist(),
        "precision": ranking.precision[kept].round(_DIGITS).tolist(),
        "threshold": ranking.thresholds[kept].tolist(),
    }


def _kept(x: npt.NDArray[np.floating], y: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Choose points of a curve, evenly along its length, including both ends."""
    if len(x) <= _POINTS:
        return np.arange(len(x))
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    places = np.searchsorted(length, np.linspace(0, length[-1], _POINTS))
    return np.unique(np.minimum(places, len(x) - 1)).astype(np.int64)


def _mean(values: Sequence[float | None]) -> float | None:
    """Average over the classes that have a value; None if no class has one."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
