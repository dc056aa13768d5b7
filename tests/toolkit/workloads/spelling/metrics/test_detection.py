"""Scores of labels compared with scikit-learn, and the rates of real-word and non-word errors."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from toolkit.workloads.spelling.metrics.detection import DetectionScore, score_labels

labels = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=2, max_size=30)


def score(rows: list[tuple[bool, bool, bool]]) -> DetectionScore:
    table = np.array(rows, bool).reshape(-1, 3)
    return score_labels(*table.T)


@given(labels)
def test_scores_are_those_of_scikit_learn(rows: list[tuple[bool, bool, bool]]) -> None:
    predictions, golds, _ = zip(*rows, strict=True)
    found = score(rows)
    judge = precision_recall_fscore_support(golds, predictions, average="binary", zero_division=0)
    assert (found.precision, found.recall, found.f1) == pytest.approx(judge[:3])
    assert found.accuracy == pytest.approx(accuracy_score(golds, predictions))


def test_the_score_of_no_labels_is_0() -> None:
    empty = DetectionScore()
    assert (empty.f1, empty.accuracy, *empty.rates().values()) == (0, 0, 0, 0)


def test_rates_are_shares_of_the_errors_of_a_kind() -> None:
    # Prediction, gold, real word.
    real = [(True, True, True), (False, True, True), (True, False, True)]
    found = score([*real, (True, True, False), (True, True, False)])
    assert found.rates() == {"real_word_rate": 0.5, "non_word_rate": 1.0}
