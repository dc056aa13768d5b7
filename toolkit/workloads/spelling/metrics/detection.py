"""Scores of the detection of errors: in words, or in whole lines."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.nlp.ratio import ratio
from toolkit.workloads.spelling.metrics.counts import Counts

_Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionScore(Counts):
    """Compared labels; a label is positive if there is an error.

    labels      number of labels, of words or lines
    equal       labels that are right
    real_words  errors that are real words (`RealWords`); found_real: how many were found
    non_words   other errors; found_non: how many were found
    """

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


#: Names of the counts of `label_counts`.
COUNTS = tuple(field.name for field in fields(DetectionScore))


def label_counts(found: Any, wrong: Any, known: Any, real: Any) -> list[Any]:
    """Return the counts in the order of COUNTS, from arrays or tensors of one shape.

    found  whether an error is predicted
    wrong  whether there is an error
    known  whether the right label is known
    real   whether the word is a real word
    """
    right = found & wrong
    facts = (
        right, found & known & ~wrong, wrong & ~found, known, known & (found == wrong), wrong & real,
        right & real, wrong & ~real, right & ~real,
    )  # fmt: skip
    return [fact.sum() for fact in facts]


def score_labels(predictions: _Labels, golds: _Labels, real: _Labels | None) -> DetectionScore:
    """Compare labels, all [n]; real: whether each label is of a real word."""
    real = np.zeros_like(golds) if real is None else real
    return DetectionScore.of_sums(*label_counts(predictions, golds, np.ones_like(golds), real))
