"""From the fragments of folded texts to whole texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_POOLED_BY = {"mean": np.add, "max": np.maximum}
_LEAST = np.finfo(np.float64).tiny


def pool_probabilities(
    log_probabilities: npt.NDArray[np.floating], groups: npt.NDArray[np.integer], pooling: str
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Pool rows [n, C] by their group [n]: first row of each group [m], its log-probabilities [m, C].

    Groups are in the order of their first rows. `mean` averages probabilities; `max` takes the
    greatest of each class, divided by their sum, so that one sure fragment decides.
    """
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    probabilities = np.exp(log_probabilities[order].astype(np.float64))
    pooled = _POOLED_BY[pooling].reduceat(probabilities, starts)
    # The sum of added probabilities is the number of fragments, but for rounding.
    pooled /= pooled.sum(axis=1, keepdims=True)
    appeared = np.argsort(first, kind="stable")
    # Never the logarithm of nothing, which JSON could not hold.
    return first[appeared], np.log(np.maximum(pooled[appeared], _LEAST))
