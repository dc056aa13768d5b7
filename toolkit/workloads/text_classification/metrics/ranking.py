"""Scores of one class against the rest, for all thresholds on its probability.

Samples of equal score are counted together, so the order of the samples has no effect. The curves equal those
of scikit-learn, which is not used because its import takes 1.5 seconds at the end of each run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.workloads.text_classification.metrics.score_values import OperatingPoint

Floats = npt.NDArray[np.float64]

#: Precisions at which recall is computed, and recalls for precision (PyText's levels).
LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Shares of samples at or above each distinct score, highest first; a division by 0 gives 0.

    thresholds           [k] float64, descending
    false_positive_rate  [k + 1] share of the other samples, from 0 on
    true_positive_rate   [k + 1] share of the samples of the class, from 0 on
    precision            [k] at each threshold
    positives            number of samples of the class
    negatives            number of other samples
    """

    thresholds: Floats
    false_positive_rate: Floats
    true_positive_rate: Floats
    precision: Floats
    positives: int
    negatives: int

    @classmethod
    def of(cls, truth: npt.NDArray[np.bool_], scores: npt.NDArray[np.floating]) -> Ranking:
        """Rank samples by score; truth [n] marks the samples of the class. Takes O(n log n)."""
        lowered, group = np.unique(-scores.astype(np.float64), return_inverse=True)
        taken = np.cumsum(np.bincount(group, minlength=len(lowered)))
        hits = np.cumsum(np.bincount(group, weights=truth, minlength=len(lowered)))
        positives = int(truth.sum())
        negatives = len(truth) - positives
        return cls(
            thresholds=-lowered,
            false_positive_rate=np.append(0.0, (taken - hits) / max(negatives, 1)),
            true_positive_rate=np.append(0.0, hits / max(positives, 1)),
            precision=hits / taken,
            positives=positives,
            negatives=negatives,
        )

    @property
    def roc_auc(self) -> float | None:
        """Area under the ROC curve: the share of pairs in the right order; ties count half.

        None without a positive or without a negative sample.
        """
        if not self.positives or not self.negatives:
            return None
        heights = (self.true_positive_rate[1:] + self.true_positive_rate[:-1]) / 2
        return float(np.diff(self.false_positive_rate) @ heights)

    @property
    def average_precision(self) -> float | None:
        """Sum over the thresholds of precision times increase of recall; None without a positive sample."""
        if not self.positives:
            return None
        return float(np.sum(np.diff(self.recall, prepend=0.0) * self.precision))

    @property
    def recall(self) -> Floats:
        """Recall at each threshold, [k]; ascending."""
        return self.true_positive_rate[1:]

    def recall_at_precision(self, precision: float) -> OperatingPoint:
        """Return the highest recall with at least this precision; in a tie, the higher precision."""
        wanted = np.where(self.precision >= precision, self.recall, -1.0)
        return self._best(precision, wanted, self.precision)

    def precision_at_recall(self, recall: float) -> OperatingPoint:
        """Return the highest precision with at least this recall; in a tie, the higher recall."""
        return self._best(recall, np.where(self.recall >= recall, self.precision, -1.0), self.recall)

    def _best(self, at: float, wanted: Floats, otherwise: Floats) -> OperatingPoint:
        """Return the threshold with the highest `wanted`, then `otherwise`; -1 in `wanted` is excluded."""
        if not self.positives or wanted.max(initial=-1.0) < 0:
            return OperatingPoint(at=at, threshold=None, precision=0.0, recall=0.0)
        best = int(np.lexsort((otherwise, wanted))[-1])
        return OperatingPoint(
            at=at,
            threshold=float(self.thresholds[best]),
            precision=float(self.precision[best]),
            recall=float(self.recall[best]),
        )
