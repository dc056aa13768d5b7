"""Ids are written as JSON writes them."""

from __future__ import annotations

import numpy as np

from toolkit.workloads.text_classification.data.build import JsonLists


def test_lists_are_those_that_json_writes() -> None:
    lists = [[0], [9, 10, 0, 99], [100, 30_521], [7] * 5]
    ids = np.concatenate(lists).astype(np.uint16)
    ends = np.cumsum([len(each) for each in lists])
    assert [*JsonLists(30_522).of(ids, ends)] == [str(each) for each in lists]
