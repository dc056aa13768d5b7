"""A table is cut into splits only by shares and seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.text_classification.data.sources.split_sizes import split_sizes
from toolkit.workloads.text_classification.data.sources.splits import assign_splits

SHARES = st.lists(
    st.floats(0, 100).filter(lambda share: share == 0 or share > 1e-6), min_size=1, max_size=5
).filter(any)
COUNTS = st.integers(0, 300)


@pytest.mark.parametrize(
    "n, shares, sizes",
    [
        (10, (0.8, 0.1, 0.1), [8, 1, 1]),
        (100, (8, 1, 1), [80, 10, 10]),
        (3, (0.8, 0.1, 0.1), [3, 0, 0]),
        (7, (1, 1, 1), [3, 2, 2]),
        (11, (0.5, 0, 0.5), [6, 0, 5]),
        (0, (1, 2), [0, 0]),
    ],
)
def test_sizes_are_rounded_by_largest_remainder(n: int, shares: list[float], sizes: list[int]) -> None:
    assert split_sizes(n, shares) == sizes


@given(COUNTS, SHARES)
def test_sizes_have_the_right_sum_and_differ_from_the_shares_by_less_than_one(
    n: int, shares: list[float]
) -> None:
    sizes = split_sizes(n, shares)
    assert sum(sizes) == n
    for size, share in zip(sizes, shares, strict=True):
        assert abs(size - n * share / sum(shares)) < 1 + 1e-6
        assert share > 0 or size == 0


@given(COUNTS, SHARES, st.integers(0, 2**40), st.booleans())
def test_splits_have_their_sizes_and_depend_only_on_the_arguments(
    n: int, shares: list[float], seed: int, stratify: bool
) -> None:
    labels = np.arange(n) % 3 if stratify else None
    splits = assign_splits(n, shares, seed, labels)
    assert np.bincount(splits, minlength=len(shares)).tolist() == split_sizes(n, shares)
    np.random.seed(n)
    assert np.array_equal(splits, assign_splits(n, list(shares), seed, labels))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), SHARES, st.integers(0, 9))
def test_stratified_splits_divide_each_label(numbers: list[int], shares: list[float], seed: int) -> None:
    labels = np.array(numbers)
    splits = assign_splits(len(labels), shares, seed, labels)
    sizes = split_sizes(len(labels), shares)
    for label in np.unique(labels):
        of_label = np.bincount(splits[labels == label], minlength=len(shares))
        expected = of_label.sum() * np.array(sizes) / len(labels)
        assert np.all(np.abs(of_label - expected) <= len(shares))


def test_a_table_ordered_by_class_is_mixed() -> None:
    labels = np.repeat([0, 1], 500)
    test_split = labels[assign_splits(1000, (0.8, 0.2), 0) == 1]
    assert 70 < test_split.sum() < 130
