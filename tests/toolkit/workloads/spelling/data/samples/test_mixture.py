"""A limit chooses evenly from a data set and does not change the validation samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.samples.mixture import divide, spread

WIKI: dict[str, Any] = {"name": "wiki", "samples": 10_000, "val_split": 250, "limit": 1000, "seed": 0}


@st.composite
def data_sets(draw: st.DrawFn) -> dict[str, Any]:
    samples = draw(st.integers(2, 500))
    count = st.integers(1, samples - 1).map(float)
    share = st.floats(0.6 / samples, 1 - 0.6 / samples)
    return {
        "name": draw(st.text(max_size=3)),
        "samples": samples,
        "val_split": draw(count | share),
        "limit": draw(st.none() | st.integers(1, 600)),
        "seed": draw(st.integers(0, 2**63 - 1)),
    }


@given(data_sets())
def test_splits_are_disjoint_and_have_their_sizes(data_set: dict[str, Any]) -> None:
    parts = [places.tolist() for places in divide(**data_set)]
    train, validation = map(set, parts)
    assert not train & validation
    samples, val_split, limit = (data_set[name] for name in ("samples", "val_split", "limit"))
    assert train | validation <= set(range(samples))
    assert parts == [sorted(train), sorted(validation)]
    assert abs(len(validation) - val_split * (samples if val_split < 1 else 1)) <= 0.5
    left = samples - len(validation)
    assert len(train) == (left if limit is None else min(left, limit))


def test_a_higher_limit_adds_samples_and_does_not_change_validation() -> None:
    (low, validation), (high, same) = (divide(**{**WIKI, "limit": limit}) for limit in (1000, 1001))
    assert np.array_equal(validation, same)
    assert set(low) < set(high)


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_no_gap_is_longer_than_three_times_the_mean(n: int, limit: int) -> None:
    chosen = spread(np.arange(n), limit)
    assert len(chosen) == min(n, limit)
    assert np.diff(chosen, prepend=-1, append=n).max() <= 3 * max(n / limit, 1) + 1


@pytest.mark.parametrize("period", [2, 3, 5, 8, 10, 13, 100])
def test_a_limit_takes_equal_shares_of_texts_that_alternate(period: int) -> None:
    counts = np.bincount(spread(np.arange(100_000), 10_000) % period, minlength=period)
    assert np.all(np.abs(counts / counts.mean() - 1) < 0.05)


def test_seed_and_name_change_validation_but_hardly_training() -> None:
    train, validation = divide(**WIKI)
    for other in ({"seed": 1}, {"name": "news"}):
        others, other_validation = divide(**{**WIKI, **other})
        assert len(np.intersect1d(validation, other_validation)) < 25
        assert len(np.intersect1d(train, others)) > 900


@pytest.mark.parametrize("val_split", [0, -1, 0.001, 0.999, 300, 301, 2.5, float("nan")])
def test_a_share_that_leaves_an_empty_split_is_refused_with_the_size_of_the_set(val_split: float) -> None:
    with pytest.raises(DataError, match="data set books has 300 samples"):
        divide("books", 300, val_split, None, seed=0)


def test_samples_are_those_of_the_first_release() -> None:
    parts = divide("wiki", 20, 4, 5, seed=0)
    assert [places.tolist() for places in parts] == [[0, 2, 5, 13, 18], [1, 4, 6, 10]]
