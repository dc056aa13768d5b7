"""Scores of a classifier from counts of its classes. Counts are summed first and divided once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.nlp.ratio import ratio
from toolkit.workloads.text_classification.metrics.score_values import ClassScore

#: For more classes, at most MOST_CONFUSIONS of the most frequent confusions are written instead of a matrix.
MOST_CLASSES = 500
MOST_CONFUSIONS = 1000

_AVERAGED = ("precision", "recall", "f1")
_COUNTED = ("true_positives", "false_positives", "false_negatives")


@dataclass(frozen=True, slots=True)
class Classification:
    """Counts of each class, the nonzero cells of the confusion matrix, and scores computed from these.

    scikit-learn is not used, because it scores samples, not sums over the ranks. A division by 0 gives 0.
    Macro averages are over all classes that occur as truth or as prediction, as in scikit-learn. Weighted
    averages weight each class by its support.

    support    [C] samples of each class
    predicted  [C] predictions of each class
    right      [C] right predictions of each class
    cells      [k] true class * C + predicted class. Not the whole matrix, which would take 3 GB for 20,000
               classes. Empty if only the counts of the classes are known.
    counts     [k] samples of each cell
    """

    labels: tuple[str, ...]
    support: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(
        cls, labels: Sequence[str], truth: npt.NDArray[np.integer], predicted: npt.NDArray[np.integer]
    ) -> Classification:
        """Count the codes of true and of predicted classes, both [n]."""
        classes = len(labels)
        cells, counts = np.unique(truth.astype(np.int64) * classes + predicted, return_counts=True)
        codes = (truth, predicted, truth[truth == predicted])
        support, guesses, right = (np.bincount(each, minlength=classes) for each in codes)
        return cls(tuple(labels), support, guesses, right, cells, counts)

    @property
    def confusion(self) -> npt.NDArray[np.int64]:
        """The whole matrix [C, C]; rows: true class, columns: predicted class."""
        classes = len(self.labels)
        matrix = np.zeros(classes * classes, np.int64)
        matrix[self.cells] = self.counts
        return matrix.reshape(classes, classes)

    @property
    def accuracy(self) -> float:
        return ratio(int(self.right.sum()), int(self.support.sum()))

    @property
    def matthews(self) -> float:
        """Matthews correlation for any number of classes; 0 if truth or predictions are all one class.

        Gorodkin, "Comparing two K-category assignments by a K-category correlation coefficient", 2004,
        eq. 8. Computed with Python's integers, because floats would lose all digits at 10^8 samples.
        """
        truth: list[int] = self.support.tolist()
        predicted: list[int] = self.predicted.tolist()
        samples, right = sum(truth), int(self.right.sum())
        together = right * samples - sum(t * p for t, p in zip(truth, predicted, strict=True))
        spread = (samples**2 - sum(t * t for t in truth)) * (samples**2 - sum(p * p for p in predicted))
        return ratio(together, math.sqrt(spread))

    @property
    def normalised(self) -> npt.NDArray[np.float64]:
        """The confusion matrix as shares of the true class; the row of a class without samples is 0."""
        return self.confusion / np.maximum(self.support, 1)[:, np.newaxis]

    def confusions(self, limit: int) -> list[tuple[str, str, int]]:
        """The most frequent mistakes as (true label, predicted label, samples)."""
        truth, predicted = np.divmod(self.cells, max(len(self.labels), 1))
        wrong = np.flatnonzero(truth != predicted)
        most = wrong[np.argsort(-self.counts[wrong], kind="stable")][:limit]
        return [
            (self.labels[truth[cell]], self.labels[predicted[cell]], int(self.counts[cell])) for cell in most
        ]

    def classes(self) -> list[ClassScore]:
        """The scores of every class, in the order of the labels."""
        counts = (self.right.tolist(), self.predicted.tolist(), self.support.tolist())
        return [
            ClassScore(
                label=label,
                precision=ratio(right, predicted),
                recall=ratio(right, support),
                f1=ratio(2 * right, predicted + support),
                support=support,
                true_positives=right,
                false_positives=predicted - right,
                false_negatives=support - right,
            )
            for label, right, predicted, support in zip(self.labels, *counts, strict=True)
        ]

    def macro(self) -> dict[str, float]:
        """Averages over the classes that occur."""
        occurs = (self.predicted + self.support) > 0
        seen = [scores for scores, here in zip(self.classes(), occurs, strict=True) if here]
        return {
            f"macro_{name}": ratio(sum(getattr(scores, name) for scores in seen), len(seen))
            for name in _AVERAGED
        }

    def weighted(self) -> dict[str, float]:
        """Averages over the classes, weighted by support."""
        classes, samples = self.classes(), int(self.support.sum())
        return {
            f"weighted_{name}": ratio(
                sum(getattr(scores, name) * scores.support for scores in classes), samples
            )
            for name in _AVERAGED
        }

    def to_json(self) -> dict[str, Any]:
        """Return the content of `<split>_classes.json`; many classes have confusions instead of a matrix."""
        is_small = len(self.labels) <= MOST_CLASSES
        return {
            "labels": list(self.labels),
            "confusion": self.confusion.tolist() if is_small else None,
            "normalised": self.normalised.round(6).tolist() if is_small else None,
            **({} if is_small else {"confusions": self.confusions(MOST_CONFUSIONS)}),
            "classes": [
                {name: getattr(scores, name) for name in ("label", *_AVERAGED, "support", *_COUNTED)}
                for scores in self.classes()
            ],
            "accuracy": self.accuracy,
            "mcc": self.matthews,
            **self.macro(),
            **self.weighted(),
        }
