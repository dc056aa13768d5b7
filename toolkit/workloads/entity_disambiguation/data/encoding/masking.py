"""The probability that training hides tokens; it is higher for more popular entities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Lower ends of the shares of rarer entities, for all probabilities but the first (Bootleg 1.1).
_FROM = (0.5, 0.65, 0.8, 0.95)
PROBABILITIES = (0.5, 0.62, 0.73, 0.84, 0.95)
_STEP = 0.05


def masking_probabilities(
    counts: npt.NDArray[np.integer], of: npt.NDArray[np.integer]
) -> npt.NDArray[np.float32]:
    """Return the probability for each count, [n], by its percentile among `of`, the counts of all entities.

    The percentile is the share of rarer entities among those that training has seen, in steps of 5 %. If
    training has seen no entity, all are rare.
    """
    seen = np.sort(of[of > 0])
    rarer = np.searchsorted(seen, counts, side="left") / max(len(seen), 1)
    # The small number corrects rounding: 0.8500000000000001 // 0.05 is 16.0
    stepped = np.floor(rarer / _STEP + 1e-9) * _STEP
    bucket = np.searchsorted(np.array(_FROM) - 1e-9, stepped, side="right")
    return np.array(PROBABILITIES, dtype=np.float32)[bucket]
