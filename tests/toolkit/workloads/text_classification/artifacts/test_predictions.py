from __future__ import annotations

import numpy as np
import pytest

from tests.toolkit.workloads.text_classification.artifacts.made import predictions


def test_the_loss_is_the_mean_log_likelihood_of_the_truth() -> None:
    assert predictions([[0.5, 0.5], [0.1, 0.9]], [0, 1]).loss == pytest.approx(
        -(np.log(0.5) + np.log(0.9)) / 2
    )
    assert predictions([], []).loss == 0.0


def test_first_class_is_predicted_for_equal_probabilities() -> None:
    assert predictions([[0.5, 0.5]], [1]).predicted.tolist() == [0]
