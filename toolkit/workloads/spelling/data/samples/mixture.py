"""Divide data sets into training and validation, and limit the number of training samples."""

from __future__ import annotations

import numpy as np

from toolkit.data.order.sample_order import Indices
from toolkit.data.order.shuffle import permutation, stream
from toolkit.workloads.spelling.data.samples.sources import validation_size

#: 2^64 divided by the golden ratio, rounded to an odd number. Its multiples modulo 2^64 spread evenly over
#: [0, 2^64): each one divides one of the longest remaining gaps (Knuth, TAOCP 3, 6.4: Fibonacci hashing).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def divide(
    name: str, samples: int, val_split: float, limit: int | None, seed: int, shown: str = ""
) -> tuple[Indices, Indices]:
    """Return the places of the samples for training and for validation, ascending: [train], [validation].

    A pure function of its arguments.

    name       distinguishes the data set from others
    val_split  samples for validation: a count of at least 1, or a share below 1
    limit      largest number of training samples, from 1; None: all
    shown      what messages call the data set; default: its name

    The validation samples are drawn at random from the whole set, so a limit does not change them. `spread`
    chooses training samples from the others, so a higher limit only adds samples.
    Raises DataError if val_split leaves nothing for training or for validation.
    """
    order = permutation(stream("validation 1", seed, name, samples), samples)
    is_validation = np.zeros(samples, dtype=bool)
    is_validation[order[: validation_size(shown or name, samples, val_split)]] = True
    return spread(np.flatnonzero(~is_validation), limit), np.flatnonzero(is_validation)


def spread(places: Indices, limit: int | None) -> Indices:
    """Return at most `limit` of these ascending places, spread evenly over all of them, in ascending order.

    limit  from 1; None: all

    The places have a fixed order of preference, so a higher limit only adds places.
    """
    if limit is None or limit >= len(places):
        return places
    assert limit > 0
    turns = places.astype(np.uint64) * _GOLDEN
    chosen: Indices = places[turns <= np.partition(turns, limit - 1)[limit - 1]]
    return chosen
