"""The predictions for the samples of a split, as arrays, and those for whole texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from toolkit.workloads.text_classification.metrics.class_scores import Classification

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_POOLED_BY = {"mean": np.add, "max": np.maximum}
_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """The predictions for one split: for its samples, or for its whole texts.

    split              train, validation, test, …
    labels             the names of the C classes
    truth              [n] codes of the true classes
    log_probabilities  [n, C], finite
    sample_ids         [n], ids in the prepared set; for a whole text, the id of its first fragment
    text_ids           [n], the text of each sample
    fragments          [n], number of samples of this text
    pooled             whether the rows are whole texts
    """

    split: str
    labels: tuple[str, ...]
    truth: npt.NDArray[np.integer]
    log_probabilities: npt.NDArray[np.floating]
    sample_ids: Integers
    text_ids: Integers
    fragments: Integers
    pooled: bool = False

    def of_texts(self, pooling: str) -> Predictions:
        """Pool the fragments of each text; texts are in the order of their first fragments."""
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
        """Whether texts have several rows, so that the scores of samples and of texts differ."""
        return not self.pooled and bool((self.fragments > 1).any())

    @property
    def level(self) -> str:
        """The unit of a row: a `text`, or a `fragment` of a text."""
        return "fragment" if self.folded else "text"

    @property
    def name(self) -> str:
        """The beginning of file names: the split, or `<split>_text`."""
        return f"{self.split}_text" if self.pooled else self.split

    @property
    def predicted(self) -> npt.NDArray[np.int64]:
        """Codes of the predicted classes, [n]; the lowest code in a tie."""
        likeliest: npt.NDArray[np.int64] = self.log_probabilities.argmax(axis=1)
        return likeliest

    @property
    def probabilities(self) -> Floats:
        """[n, C]."""
        return np.exp(self.log_probabilities.astype(np.float64))

    @property
    def loss(self) -> float:
        """Mean negative log-likelihood of the true classes, in nats; 0 without samples."""
        chosen = self.log_probabilities[np.arange(len(self.truth)), self.truth]
        return float(-chosen.astype(np.float64).mean()) if len(chosen) else 0.0

    def classification(self) -> Classification:
        return Classification.of(self.labels, self.truth, self.predicted)

    def __len__(self) -> int:
        return len(self.truth)


def pool_probabilities(
    log_probabilities: npt.NDArray[np.floating], groups: npt.NDArray[np.integer], pooling: str
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Pool rows [n, C] by group [n]; return the first row of each group [m] and its log-probabilities [m, C].

    Groups are in the order of their first rows. `mean` averages probabilities. `max` takes the maximum of
    each class, divided by the sum of the maxima, so one confident fragment dominates.
    """
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    probabilities = np.exp(log_probabilities[order].astype(np.float64))
    pooled = _POOLED_BY[pooling].reduceat(probabilities, starts)
    # The sum of the added probabilities is the number of fragments, up to rounding.
    pooled /= pooled.sum(axis=1, keepdims=True)
    appeared = np.argsort(first, kind="stable")
    # The logarithm of 0 is avoided, because JSON has no infinity.
    return first[appeared], np.log(np.maximum(pooled[appeared], _LEAST))


def samples_per_text(text_ids: Integers) -> Integers:
    """Return the number of samples of each sample's text, [n]."""
    _, place, counts = np.unique(text_ids, return_inverse=True, return_counts=True)
    return counts[place].astype(np.int64)
