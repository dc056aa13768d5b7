"""Divide data sets into training and validation, and limit the training samples."""

from __future__ import annotations

import numpy as np

from toolkit.data.order.sample_order import Indices
from toolkit.data.order.shuffle import permutation, stream
from toolkit.errors import DataError

#: 2^64 over the golden ratio, made odd: multiples of it, modulo 2^64, fall evenly into [0, 2^64), each into
#: one of the longest gaps that the ones before left (Knuth, TAOCP 3, 6.4: Fibonacci hashing).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def divide(
    name: str, samples: int, val_split: float, limit: int | None, seed: int
) -> tuple[Indices, Indices]:
    """Places of the samples for training and for validation, ascending and disjoint: [train], [validation].

    A pure function of its arguments.

    name       distinguishes the data set from others
    val_split  samples for validation: from 1 a count, below 1 a share of all
    limit      largest number of training samples, from 1; None for all

    Validation is drawn at random from all of it, so that a limit does not change it. Of the others, training
    takes those of `spread`: a higher limit adds samples to those of a lower one.
    Raises DataError where val_split leaves nothing for one of the two.
    """
    order = permutation(stream("validation 1", seed, name, samples), samples)
    is_validation = np.zeros(samples, dtype=bool)
    is_validation[order[: _validation_size(name, samples, val_split)]] = True
    return spread(np.flatnonzero(~is_validation), limit), np.flatnonzero(is_validation)


def spread(places: Indices, limit: int | None) -> Indices:
    """Choose at most `limit` of these ascending places, spread evenly over them all: ascending.

    limit  from 1; None for all
    The places come in turns that never change, so a lower limit chooses a part of what a higher one does.
    """
    if limit is None or limit >= len(places):
        return places
    assert limit > 0
    turns = places.astype(np.uint64) * _GOLDEN
    chosen: Indices = places[turns <= np.partition(turns, limit - 1)[limit - 1]]
    return chosen


def _validation_size(name: str, samples: int, wanted: float) -> int:
    size = round(samples * wanted) if wanted < 1 else wanted
    if 1 <= size < samples and size == int(size):
        return int(size)
    raise DataError(
        f"the data set {name} has {samples} samples, and val_splits asks for {wanted:g}: expected a "
        "count, or a share below 1, that makes at least one sample and leaves at least one for training"
    )
