"""A reference implementation of Bootleg's scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from toolkit.workloads.entity_disambiguation.metrics.slice_score import NOT_SCORED, OUTSIDE, SliceScore

Places = npt.NDArray[np.integer]


def score(
    golds: Places, predictions: Places, members: npt.NDArray[np.bool_], *, no_candidate: bool = False
) -> SliceScore:
    """Count the mentions of a slice, and right predictions; all arguments are [n].

    Without a class for "no candidate", a mention whose gold is not a candidate is always wrong.
    """
    counted = members & (golds != NOT_SCORED)
    not_nc = counted & (golds != (0 if no_candidate else OUTSIDE))
    right = (predictions == golds) & (golds != OUTSIDE)
    popular = golds == (1 if no_candidate else 0)
    return SliceScore(
        mentions=_count(counted),
        mentions_not_nc=_count(not_nc),
        correct=_count(counted & right),
        correct_not_nc=_count(not_nc & right),
        popular=_count(counted & popular),
        popular_not_nc=_count(not_nc & popular),
    )


def _count(which: npt.NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(which))
