"""How often tokens of popular entities are hidden."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.workloads.entity_disambiguation.data.samples.build import masking_probabilities


@pytest.mark.parametrize(
    "rarer, probability",
    [(0, 0.5), (49, 0.5), (50, 0.62), (64, 0.62), (65, 0.73), (79, 0.73), (80, 0.84), (94, 0.84), (95, 0.95)],
)
def test_probability_grows_with_the_share_of_rarer_entities(rarer: int, probability: float) -> None:
    hundred = np.arange(1, 101)
    (found,) = masking_probabilities(np.array([rarer + 1]), hundred)
    assert found == pytest.approx(probability)


def test_unseen_entities_are_rare_and_equal_counts_have_the_same_probability() -> None:
    assert masking_probabilities(np.array([0, 7]), np.array([0, 7, 7, 7])).tolist() == [0.5, 0.5]
    assert masking_probabilities(np.array([0, 3]), np.array([0, 0])).tolist() == [0.5, 0.5]
