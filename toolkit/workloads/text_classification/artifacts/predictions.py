"""Predictions for the samples of a split, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from toolkit.workloads.text_classification.metrics.classification import Classification
from toolkit.workloads.text_classification.metrics.pooling import pool_probabilities

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """The predictions of one split: of samples, or of whole texts that were folded into several.

    split              train, validation, test, …
    labels             the names of the C classes
    truth              [n] codes of the true classes
    log_probabilities  [n, C], finite
    sample_ids         [n], ids in the prepared set; of a whole text, that of its first fragment
    text_ids           [n], the text that each sample is a fragment of
    fragments          [n], how many samples this text was folded into
    pooled             whether the rows are whole texts
    """

    split: str
    labels: tuple[str, ...]
    truth: npt.NDArray[np.integer]
    log_probabilities: npt.NDArray[np.floating]
    sample_ids: Integers
    text_ids: Integers
    fragments: Integers
    pooled: bool

    @classmethod
    def of_samples(
        cls,
        split: str,
        labels: tuple[str, ...],
        truth: npt.NDArray[np.integer],
        log_probabilities: npt.NDArray[np.floating],
        sample_ids: Integers,
        text_ids: Integers,
    ) -> Predictions:
        """Make predictions from the outputs of an evaluation: a row for each sample."""
        _, place, counts = np.unique(text_ids, return_inverse=True, return_counts=True)
        return cls(
            split=split,
            labels=labels,
            truth=truth,
            log_probabilities=log_probabilities,
            sample_ids=sample_ids,
            text_ids=text_ids,
            fragments=counts[place].astype(np.int64),
            pooled=False,
        )

    def of_texts(self, pooling: str) -> Predictions:
        """Pool the fragments of each text, in the order of their first fragments."""
        first, log_probabilities = pool_probabilities(self.log_probabilities, self.text_ids, pooling)
        return replace(
            self,
            truth=self.truth[first],
            log_probabilities=log_probabilities,
            sample_ids=self.sample_ids[first],
            text_ids=self.text_ids[first],
            fragments=self.fragments[first],
            pooled=True,
        )

    @property
    def folded(self) -> bool:
        """Whether some text is in several rows, so that scores of samples and of texts differ."""
        return not self.pooled and bool((self.fragments > 1).any())

    @property
    def level(self) -> str:
        """Return the unit of a row: a `text`, or a `fragment` of one."""
        return "fragment" if self.folded else "text"

    @property
    def name(self) -> str:
        """The beginning of the names of their files: the split, or `<split>_text`."""
        return f"{self.split}_text" if self.pooled else self.split

    @property
    def predicted(self) -> npt.NDArray[np.int64]:
        """Predicted class indices, [n]; ties go to the lowest."""
        likeliest: npt.NDArray[np.int64] = self.log_probabilities.argmax(axis=1)
        return likeliest

    @property
    def probabilities(self) -> Floats:
        """[n, C]."""
        return np.exp(self.log_probabilities.astype(np.float64))

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood of the true classes, in nats; 0 of nothing."""
        chosen = self.log_probabilities[np.arange(len(self.truth)), self.truth]
        return float(-chosen.astype(np.float64).mean()) if len(chosen) else 0.0

    def classification(self) -> Classification:
        return Classification.of(self.labels, self.truth, self.predicted)

    def __len__(self) -> int:
        return len(self.truth)
