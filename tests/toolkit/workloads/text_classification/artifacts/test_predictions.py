from __future__ import annotations

import numpy as np
import pytest

from tests.toolkit.workloads.text_classification.artifacts.made import FOLDED, predictions


def test_fragments_of_one_text_become_one_row() -> None:
    texts = FOLDED.of_texts("mean")
    assert texts.text_ids.tolist() == [4, 9, 7]
    assert texts.sample_ids.tolist() == [100, 102, 103]
    assert texts.fragments.tolist() == [2, 1, 2]
    assert texts.truth.tolist() == [1, 0, 1]
    np.testing.assert_allclose(texts.probabilities, [[0.35, 0.65], [0.8, 0.2], [0.8, 0.2]], rtol=1e-6)
    assert FOLDED.classification().accuracy == 2 / 5
    assert texts.classification().accuracy == 2 / 3


def test_the_loss_is_the_mean_log_likelihood_of_the_truth() -> None:
    assert predictions([[0.5, 0.5], [0.1, 0.9]], [0, 1]).loss == pytest.approx(
        -(np.log(0.5) + np.log(0.9)) / 2
    )
    assert predictions([], []).loss == 0.0


def test_first_class_is_predicted_for_equal_probabilities() -> None:
    assert predictions([[0.5, 0.5]], [1]).predicted.tolist() == [0]
