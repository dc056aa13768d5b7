"""Scores of a classifier from its confusion matrix: sums first, divided once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Precision, recall and F1 of one class; support is the number of its samples."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class Classification:
    """A confusion matrix (rows: true class, columns: predicted class) and what follows from it.

    A division by zero gives 0. Macro averages are over all classes that occur, as truth or as
    prediction, which is scikit-learn's average over the union of labels.
    """

    labels: tuple[str, ...]
    confusion: np.ndarray

    @property
    def accuracy(self) -> float:
        return _ratio(np.trace(self.confusion), self.confusion.sum())

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
            )
            for i, label in enumerate(self.labels)
        ]

    def macro(self) -> dict[str, float]:
        """Averages over the classes that occur."""
        occurs = (self.confusion.sum(axis=0) + self.confusion.sum(axis=1)) > 0
        seen = [scores for scores, here in zip(self.classes(), occurs, strict=True) if here]
        return {
            f"macro_{name}": _ratio(sum(getattr(scores, name) for scores in seen), len(seen))
            for name in ("precision", "recall", "f1")
        }

    def to_json(self) -> dict[str, Any]:
        """What `artifacts/<split>_classes.json` holds."""
        return {
            "labels": list(self.labels),
            "confusion": self.confusion.astype(int).tolist(),
            "classes": [
                {name: getattr(scores, name) for name in ("label", "precision", "recall", "f1", "support")}
                for scores in self.classes()
            ],
            "accuracy": self.accuracy,
            **self.macro(),
        }


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else 0.0
