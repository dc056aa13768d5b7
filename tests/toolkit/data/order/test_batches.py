"""An experiment's batches are of so many samples or so many tokens, as it says."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.config.schema import Evaluation, Train
from toolkit.data.order.batches import epoch_plan, epoch_steps, evaluation_plan

LENGTHS = np.arange(65) % 20 + 1
SAMPLES = Train(batch_size=8)
BUCKETS = Train(batch_max_length=160, bucket_span=4, logical_ranks=2, accumulation=3)
SHUFFLED = Train(batch_max_length=160)


@pytest.mark.parametrize("train, steps", [(SAMPLES, 9), (BUCKETS, 6), (SHUFFLED, 5)])
def test_epoch_steps_equal_the_steps_of_the_plan(train: Train, steps: int) -> None:
    plan = epoch_plan(train, LENGTHS, seed=0, epoch=0, fingerprint="data")
    assert epoch_steps(train, LENGTHS) == plan.steps == steps
    assert plan.micro_batches == train.logical_ranks * train.accumulation


def test_an_evaluation_is_cut_by_samples_or_by_tokens() -> None:
    assert len(evaluation_plan(Evaluation(batch_size=60), LENGTHS).step(0)) == 60
    last = evaluation_plan(Evaluation(batch_max_length=100), LENGTHS)
    assert LENGTHS[last.step(last.steps - 1)].tolist() == [19, 19, 20, 20, 20]
