"""Pool fragments into texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.text_classification.artifacts.predictions import pool_probabilities


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_the_logarithm_of_probability_0_is_finite(pooling: str) -> None:
    _, pooled = pool_probabilities(np.array([[0.0, -2000.0]]), np.array([0]), pooling)
    assert np.isfinite(pooled).all()


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_pooling_no_rows_gives_no_rows(pooling: str) -> None:
    first, pooled = pool_probabilities(np.zeros((0, 3)), np.array([], dtype=np.int64), pooling)
    assert first.shape == (0,)
    assert pooled.shape == (0, 3)


@given(groups=st.lists(st.integers(0, 5), min_size=1, max_size=30), pooling=st.sampled_from(["mean", "max"]))
def test_each_group_is_pooled_alone(groups: list[int], pooling: str) -> None:
    probabilities = np.random.default_rng(len(groups)).dirichlet(np.ones(3), len(groups))
    first, pooled = pool_probabilities(np.log(probabilities), np.array(groups), pooling)
    assert first.tolist() == sorted({groups.index(group) for group in groups})
    for row, result in zip(first, np.exp(pooled), strict=True):
        members = probabilities[np.array(groups) == groups[row]]
        expected = members.mean(axis=0) if pooling == "mean" else members.max(axis=0)
        np.testing.assert_allclose(result, expected / expected.sum())
