"""Cut one table into splits, by shares and a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolkit.data.order.shuffle import permutation, stream
from toolkit.workloads.text_classification.data.sources.split_sizes import split_sizes

SplitNumbers = npt.NDArray[np.int8]


def assign_splits(
    n: int, shares: Sequence[float], seed: int, labels: npt.NDArray[np.integer] | None = None
) -> SplitNumbers:
    """Assign a split to each of n samples: [n], numbers of the splits in the order of `shares`.

    The result depends only on the arguments. With `labels` [n] every split gets the same share of each label,
    up to rounding; the sizes of the splits are the same as without labels.
    """
    sizes = split_sizes(n, shares)
    order = permutation(stream("split 1", seed, n), n)
    turns = np.repeat(np.arange(len(sizes), dtype=np.int8), sizes)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
        # Spread evenly, so that each part has every split in its share.
        places = np.concatenate([(np.arange(size) + 0.5) / max(size, 1) for size in sizes])
        turns = turns[np.argsort(places, kind="stable")]
    splits = np.empty(n, dtype=np.int8)
    splits[order] = turns
    return splits
