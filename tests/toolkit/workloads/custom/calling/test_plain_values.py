"""Values that JSON can hold are passed on; others are refused with their place."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.workloads.custom.calling.plain_values import NotPlain, plain


class Split(StrEnum):
    TRAIN = "train"


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "é", [], {}, [{"a": [None, False, 2**70, 10**4299]}]])
def test_plain_values_are_unchanged(value: Any) -> None:
    assert json.loads(json.dumps(plain(value, "x"))) == value


@pytest.mark.parametrize(
    "value, handed_over",
    [
        ((1, (2,)), [1, [2]]),
        (Path("a/b"), "a/b"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.float32(0.5) > 0.2, True),
        (Split.TRAIN, "train"),
        ({Split.TRAIN: 1}, {"train": 1}),
    ],
)
def test_tuples_paths_enums_and_numpy_scalars_are_converted(value: Any, handed_over: Any) -> None:
    found = plain(value, "x")
    assert (found, type(found)) == (handed_over, type(handed_over))


def test_nan_survives_json() -> None:
    assert math.isnan(json.loads(json.dumps(plain([math.nan], "x")))[0])


@pytest.mark.parametrize(
    "value, place",
    [
        ({1, 2}, "x is of type set"),
        ([-(10**5000)], "x[0] is a whole number of 4,300 digits or more"),
        (b"", "x is of type bytes"),
        (1j, "x is of type complex"),
        (Fraction(1, 3), "x is of type fractions.Fraction"),
        (np.zeros(2), "x is of type numpy.ndarray"),
        ([0, {"a": (len,)}], "x[1]['a'][0] is of type builtin_function_or_method"),
        ({"a": {2: 3}}, "x['a'] is a dictionary with the key 2"),
    ],
)
def test_other_types_are_refused_with_their_place(value: Any, place: str) -> None:
    with pytest.raises(NotPlain) as raised:
        plain(value, "x")
    assert str(raised.value).startswith(place)
