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
    if labels is None:
        turns = np.repeat(np.arange(len(sizes), dtype=np.int8), sizes)
    else:
        order = order[np.argsort(labels[order], kind="stable")]
        turns = _take_turns(sizes)
    splits = np.empty(n, dtype=np.int8)
    splits[order] = turns
    return splits


def _take_turns(sizes: Sequence[int]) -> SplitNumbers:
    """Return split numbers, [sum(sizes)], spread evenly: each part has every split in its share."""
    numbers = np.repeat(np.arange(len(sizes), dtype=np.int8), sizes)
    places = [(np.arange(size) + 0.5) / max(size, 1) for size in sizes]
    return numbers[np.argsort(np.concatenate(places), kind="stable")]
