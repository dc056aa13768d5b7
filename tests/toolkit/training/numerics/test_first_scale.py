"""The initial loss scale of fp16."""

from __future__ import annotations

import pytest

from toolkit.config.schema import Train
from toolkit.training.numerics.arithmetic import first_scale


@pytest.mark.parametrize(
    "train, scale",
    [
        (Train(batch_size=1), 2**16),
        (Train(batch_size=64), 2**10),
        (Train(batch_max_length=5000), 2**4),
        (Train(batch_size=10**9), 2**-13),
    ],
)
def test_first_scale_decreases_with_the_batch_size(train: Train, scale: float) -> None:
    assert first_scale(train) == scale
