"""Lists in two flat arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.ragged import Lists


def test_lasts_returns_the_last_number_of_each_list():
    lists = Lists(np.array([4, 5, 6, 7]), np.array([0, 2, 2, 3, 4]))
    assert lists.lasts(np.array([1, 0, 3, 2]), -1).tolist() == [-1, 5, 7, 6]
    assert Lists(np.array([]), np.array([0, 0])).lasts(np.array([0]), 9).tolist() == [9]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@given(st.lists(st.lists(st.integers(1, 65535), max_size=9), min_size=1, max_size=12), st.data())
def test_gathered_lists_are_rows_padded_at_the_end(
    dtype: npt.DTypeLike, given_lists: list[list[int]], data: st.DataObject
) -> None:
    which = data.draw(st.lists(st.integers(0, len(given_lists) - 1), max_size=20))
    rows = Lists.of([np.array(each) for each in given_lists], dtype).gather(np.array(which, np.int64), 0)
    picked = [given_lists[place] for place in which]
    width = max([1, *map(len, picked)])
    assert (rows.shape, rows.dtype) == ((len(which), width), np.int64)
    assert rows.tolist() == [each + [0] * (width - len(each)) for each in picked]
