"""Scores of the detection of errors: in words, or in whole lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.nlp.ratio import ratio
from toolkit.workloads.spelling.metrics.counts import NOTHING, Additive, Counts

_Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionScore(Additive):
    """Labels compared, positive where there is an error.

    labels      words or lines
    equal       labels that are right
    real_words  errors that are real words (texts/real_words.py); found_real: those found
    non_words   other errors; found_non: those found
    """

    counts: Counts = NOTHING
    labels: int = 0
    equal: int = 0
    real_words: int = 0
    found_real: int = 0
    non_words: int = 0
    found_non: int = 0

    @property
    def accuracy(self) -> float:
        return ratio(self.equal, self.labels)

    def rates(self) -> dict[str, float]:
        """Recall of real-word errors and of non-word errors, by name."""
        return {
            "real_word_rate": ratio(self.found_real, self.real_words),
            "non_word_rate": ratio(self.found_non, self.non_words),
        }


def score_labels(predictions: _Labels, golds: _Labels, real: _Labels | None = None) -> DetectionScore:
    """Compare labels, all [n]; real: whether what is labelled is a real word."""
    right = predictions & golds
    real = np.zeros_like(golds) if real is None else real
    return DetectionScore(
        counts=Counts(
            true_positives=_count(right),
            false_positives=_count(predictions & ~golds),
            false_negatives=_count(golds & ~predictions),
        ),
        labels=len(golds),
        equal=_count(predictions == golds),
        real_words=_count(golds & real),
        found_real=_count(right & real),
        non_words=_count(golds & ~real),
        found_non=_count(right & ~real),
    )


def _count(which: _Labels) -> int:
    return int(np.count_nonzero(which))
