"""Scores of a classifier from its confusion matrix: sums first, divided once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_AVERAGED = ("precision", "recall", "f1")


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Precision, recall and F1 of one class; support is the number of its samples."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int
    true_positives: int
    false_positives: int
    false_negatives: int

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Classification:
    """A confusion matrix (rows: true class, columns: predicted class) and what follows from it.

    A division by zero gives 0. Macro averages are over all classes that occur, as truth or as
    prediction, which is scikit-learn's average over the union of labels; weighted averages count
    each class by its support.
    """

    labels: tuple[str, ...]
    confusion: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls, labels: Sequence[str], truth: npt.NDArray[np.integer], predicted: npt.NDArray[np.integer]
    ) -> Classification:
        """Count codes of true and of predicted classes, both [n]."""
        classes = len(labels)
        cells = truth.astype(np.int64) * classes + predicted
        counts = np.bincount(cells, minlength=classes * classes)
        return cls(tuple(labels), counts.reshape(classes, classes).astype(np.int64))

    @property
    def accuracy(self) -> float:
        return _ratio(np.trace(self.confusion), self.confusion.sum())

    @property
    def matthews(self) -> float:
        """Matthews correlation for any number of classes; 0 where all truth or all predictions agree.

        Gorodkin, "Comparing two K-category assignments by a K-category correlation coefficient",
        2004, eq. 8. In whole numbers of any size: floats would cancel out at 10^8 samples.
        """
        truth: list[int] = self.confusion.sum(axis=1).tolist()
        predicted: list[int] = self.confusion.sum(axis=0).tolist()
        samples, right = sum(truth), int(np.trace(self.confusion))
        together = right * samples - sum(t * p for t, p in zip(truth, predicted, strict=True))
        spread = (samples**2 - sum(t * t for t in truth)) * (samples**2 - sum(p * p for p in predicted))
        return _ratio(together, math.sqrt(spread))

    @property
    def normalised(self) -> npt.NDArray[np.float64]:
        """The confusion matrix as shares of the true class; a class without samples is a row of 0."""
        support = self.confusion.sum(axis=1, keepdims=True)
        shares = np.zeros(self.confusion.shape)
        np.divide(self.confusion, support, out=shares, where=support > 0)
        return shares

    def classes(self) -> list[ClassScores]:
        """Scores of every class, in the order of the labels."""
        right = np.diag(self.confusion)
        predicted, support = self.confusion.sum(axis=0), self.confusion.sum(axis=1)
        return [
            ClassScores(
                label,
                precision=_ratio(right[i], predicted[i]),
                recall=_ratio(right[i], support[i]),
                f1=_ratio(2 * right[i], predicted[i] + support[i]),
                support=int(support[i]),
                true_positives=int(right[i]),
                false_positives=int(predicted[i] - right[i]),
                false_negatives=int(support[i] - right[i]),
            )
            for i, label in enumerate(self.labels)
        ]

    def macro(self) -> dict[str, float]:
        """Averages over the classes that occur."""
        occurs = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        seen = [scores for scores, here in zip(self.classes(), occurs, strict=True) if here]
        return {
            f"macro_{name}": _ratio(sum(getattr(scores, name) for scores in seen), len(seen))
            for name in _AVERAGED
        }

    def weighted(self) -> dict[str, float]:
        """Averages in which each class counts by its support."""
        classes, samples = self.classes(), self.confusion.sum()
        return {
            f"weighted_{name}": _ratio(
                sum(getattr(scores, name) * scores.support for scores in classes), samples
            )
            for name in _AVERAGED
        }

    def to_json(self) -> dict[str, Any]:
        """What `artifacts/<split>_classes.json` says of the confusion matrix."""
        return {
            "labels": list(self.labels),
            "confusion": self.confusion.astype(int).tolist(),
            "normalised": self.normalised.round(6).tolist(),
            "classes": [scores.to_json() for scores in self.classes()],
            "accuracy": self.accuracy,
            "mcc": self.matthews,
            **self.macro(),
            **self.weighted(),
        }


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 0.0
