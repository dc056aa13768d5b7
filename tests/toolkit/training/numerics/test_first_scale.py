"""The scale of the loss with which fp16 begins."""

from __future__ import annotations

import pytest

from toolkit.config.schema import Train
from toolkit.training.numerics.arithmetic import first_scale


@pytest.mark.parametrize(
    "train, scale",
    [(Train(batch_size=1), 2**16), (Train(batch_size=64), 2**10), (Train(batch_max_length=5000), 2**4)],
)
def test_the_scale_of_a_sum_is_that_of_its_mean_over_its_terms(train: Train, scale: float) -> None:
    assert first_scale(train) == scale


def test_any_batch_has_a_scale_above_zero() -> None:
    assert first_scale(Train(batch_size=10**9)) > 0
