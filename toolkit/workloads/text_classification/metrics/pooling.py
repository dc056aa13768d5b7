"""Pool the probabilities of fragments into probabilities of whole texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_POOLED_BY = {"mean": np.add, "max": np.maximum}
_LEAST = np.finfo(np.float64).tiny


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
