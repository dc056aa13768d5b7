"""Lists in two flat arrays."""

from __future__ import annotations

import numpy as np

from toolkit.data.ragged import Lists


def test_lasts_returns_the_last_number_of_each_list():
    lists = Lists(np.array([4, 5, 6, 7]), np.array([0, 2, 2, 3, 4]))
    assert lists.lasts(np.array([1, 0, 3, 2]), -1).tolist() == [-1, 5, 7, 6]
    assert Lists(np.array([]), np.array([0, 0])).lasts(np.array([0]), 9).tolist() == [9]
