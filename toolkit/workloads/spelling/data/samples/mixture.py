"""Divide data sets into training and validation, and limit the training samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolkit.data.order.sample_order import Indices
from toolkit.data.order.shuffle import permutation, stream
from toolkit.errors import DataError

#: 2^64 over the golden ratio, made odd: multiples of it, modulo 2^64, fall evenly into [0, 2^64), each into
#: one of the longest gaps that the ones before left (Knuth, TAOCP 3, 6.4: Fibonacci hashing).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set, and how much of it is used.

    name       distinguishes it from other data sets
    samples    number of samples
    val_split  samples for validation: from 1 a count, below 1 a share of all
    limit      largest number of training samples, from 1; None for all
    """

    name: str
    samples: int
    val_split: float
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Places of the samples of both splits, ascending and disjoint: [train] and [validation]."""

    train: Indices
    validation: Indices


def divide(data_set: DataSet, seed: int) -> Parts:
    """Divide a data set: a pure function of its name and size, its two options and the seed.

    Validation is drawn at random from all of it, so that a limit does not change it. Of the others, training
    takes those of `spread`: a higher limit adds samples to those of a lower one.
    Raises DataError where val_split leaves nothing for one of the two.
    """
    order = permutation(stream("validation 1", seed, data_set.name, data_set.samples), data_set.samples)
    is_validation = np.zeros(data_set.samples, dtype=bool)
    is_validation[order[: _validation_size(data_set)]] = True
    others = np.flatnonzero(~is_validation)
    return Parts(train=spread(others, data_set.limit), validation=np.flatnonzero(is_validation))


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


def _validation_size(data_set: DataSet) -> int:
    wanted, samples = data_set.val_split, data_set.samples
    size = round(samples * wanted) if wanted < 1 else wanted
    if 1 <= size < samples and size == int(size):
        return int(size)
    raise DataError(
        f"the data set {data_set.name} has {samples} samples, and val_splits asks for {wanted:g}: expected a "
        "count, or a share below 1, that makes at least one sample and leaves at least one for training"
    )
