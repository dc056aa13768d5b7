"""Fragments become texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.text_classification.metrics.pooling import pool_probabilities


def logs(rows: list[list[float]]) -> np.ndarray:
    return np.log(np.array(rows, dtype=np.float64))


def test_the_mean_of_a_texts_probabilities_is_that_of_the_text() -> None:
    first, pooled = pool_probabilities(
        logs([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]), np.array([7, 3, 7]), "mean"
    )
    assert first.tolist() == [0, 1]
    np.testing.assert_allclose(np.exp(pooled), [[0.7, 0.3], [0.2, 0.8]])


def test_the_surest_fragment_decides_by_maximum() -> None:
    fragments = [[0.9, 0.1], [0.4, 0.6], [0.4, 0.6]]
    _, pooled = pool_probabilities(logs(fragments), np.array([1, 1, 1]), "max")
    np.testing.assert_allclose(np.exp(pooled), [[0.6, 0.4]])
    _, pooled = pool_probabilities(logs(fragments), np.array([1, 1, 1]), "mean")
    assert pooled.argmax() == 0
    _, pooled = pool_probabilities(logs([[0.55, 0.45], [0.55, 0.45], [0.3, 0.7]]), np.zeros(3, int), "max")
    assert pooled.argmax() == 1


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_probability_of_nothing_stays_a_number(pooling: str) -> None:
    _, pooled = pool_probabilities(np.array([[0.0, -2000.0]]), np.array([0]), pooling)
    assert np.isfinite(pooled).all()


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_nothing_pools_to_nothing(pooling: str) -> None:
    first, pooled = pool_probabilities(np.zeros((0, 3)), np.array([], dtype=np.int64), pooling)
    assert first.shape == (0,)
    assert pooled.shape == (0, 3)


@given(groups=st.lists(st.integers(0, 5), min_size=1, max_size=30), pooling=st.sampled_from(["mean", "max"]))
def test_pooling_is_that_of_each_group_alone(groups: list[int], pooling: str) -> None:
    probabilities = np.random.default_rng(len(groups)).dirichlet(np.ones(3), len(groups))
    first, pooled = pool_probabilities(np.log(probabilities), np.array(groups), pooling)
    assert first.tolist() == sorted({groups.index(group) for group in groups})
    for row, result in zip(first, np.exp(pooled), strict=True):
        members = probabilities[np.array(groups) == groups[row]]
        expected = members.mean(axis=0) if pooling == "mean" else members.max(axis=0)
        np.testing.assert_allclose(result, expected / expected.sum())
