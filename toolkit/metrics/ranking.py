"""Scores of one class against the rest from its probabilities: what each threshold would give.

Samples of equal score stand or fall together, so that no figure depends on the order of the samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Where recall is asked for a precision, and precision for a recall (PyText's levels).
LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """What a threshold gives; `threshold` is None where no threshold reaches what was asked for."""

    threshold: float | None
    precision: float
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """How many samples lie at or above each distinct score, the highest first.

    thresholds       [k] float64, falling
    true_positives   [k] float64, samples of the class with at least this score
    false_positives  [k] float64, the others
    positives, negatives    of all samples
    """

    thresholds: Floats
    true_positives: Floats
    false_positives: Floats
    positives: int
    negatives: int

    @classmethod
    def of(cls, truth: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating]) -> Ranking:
        """Rank samples by their score; truth [n] says which are of the class. Takes O(n log n)."""
        order = np.argsort(-scores, kind="stable")
        ranked, right = scores[order], truth[order]
        last = np.flatnonzero(np.diff(ranked, append=-np.inf)) if len(ranked) else np.array([], np.int64)
        hits = np.cumsum(right)[last].astype(np.float64)
        return cls(
            thresholds=ranked[last].astype(np.float64),
            true_positives=hits,
            false_positives=last + 1.0 - hits,
            positives=int(truth.sum()),
            negatives=int(len(truth) - truth.sum()),
        )

    @property
    def roc_auc(self) -> float | None:
        """Area under the ROC curve: the share of pairs in the right order, ties counted half.

        None where there is only one of the two.
        """
        if not self.positives or not self.negatives:
            return None
        rates = self.true_positive_rate
        return float(np.sum(np.diff(self.false_positive_rate) * (rates[1:] + rates[:-1]) / 2))

    @property
    def average_precision(self) -> float | None:
        """Sum over the thresholds of precision times gain of recall; None without a positive sample."""
        if not self.positives:
            return None
        return float(np.sum(np.diff(self.recall, prepend=0.0) * self.precision))

    @property
    def false_positive_rate(self) -> Floats:
        """[k + 1], from (0, 0) on; 0 where there is no negative sample."""
        return np.concatenate([[0.0], self.false_positives]) / max(self.negatives, 1)

    @property
    def true_positive_rate(self) -> Floats:
        """[k + 1], from (0, 0) on; 0 where there is no positive sample."""
        return np.concatenate([[0.0], self.true_positives]) / max(self.positives, 1)

    @property
    def precision(self) -> Floats:
        """[k], at each threshold."""
        return self.true_positives / (self.true_positives + self.false_positives)

    @property
    def recall(self) -> Floats:
        """[k], at each threshold; rising."""
        return self.true_positives / max(self.positives, 1)

    def recall_at_precision(self, precision: float) -> OperatingPoint:
        """The greatest recall with at least this precision; of equal ones, the more precise."""
        return self._best(np.where(self.precision >= precision, self.recall, -1.0), self.precision)

    def precision_at_recall(self, recall: float) -> OperatingPoint:
        """The greatest precision with at least this recall; of equal ones, the greater recall."""
        return self._best(np.where(self.recall >= recall, self.precision, -1.0), self.recall)

    def _best(self, wanted: Floats, otherwise: Floats) -> OperatingPoint:
        """The threshold with the greatest `wanted`, ties by `otherwise`; -1 is no candidate."""
        if not self.positives or wanted.max(initial=-1.0) < 0:
            return OperatingPoint(threshold=None, precision=0.0, recall=0.0)
        best = int(np.lexsort((otherwise, wanted))[-1])
        return OperatingPoint(
            threshold=float(self.thresholds[best]),
            precision=float(self.precision[best]),
            recall=float(self.recall[best]),
        )
