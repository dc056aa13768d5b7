"""Ranked scores equal those of scikit-learn, also with ties."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from toolkit.workloads.text_classification.metrics.ranking import LEVELS, Ranking

#: Few distinct scores, so that ties are the rule.
samples = st.lists(st.tuples(st.booleans(), st.integers(0, 8).map(lambda n: n / 8)), min_size=1, max_size=60)


def arrays(pairs: list[tuple[bool, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([truth for truth, _ in pairs]), np.array([score for _, score in pairs])


@given(pairs=samples)
def test_areas_equal_scikit_learn(pairs: list[tuple[bool, float]]) -> None:
    truth, scores = arrays(pairs)
    ranking = Ranking.of(truth, scores)
    if truth.all() or not truth.any():
        assert ranking.roc_auc is None
    else:
        assert ranking.roc_auc == pytest.approx(sklearn.roc_auc_score(truth, scores))
    if truth.any():
        assert ranking.average_precision == pytest.approx(sklearn.average_precision_score(truth, scores))
    else:
        assert ranking.average_precision is None


@given(pairs=samples)
def test_curves_equal_scikit_learn(pairs: list[tuple[bool, float]]) -> None:
    truth, scores = arrays(pairs)
    ranking = Ranking.of(truth, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of truth with one class only
        expected = sklearn.roc_curve(truth, scores, drop_intermediate=False)
        precision, recall, thresholds = sklearn.precision_recall_curve(truth, scores)
    for found, wanted in zip(
        (ranking.false_positive_rate, ranking.true_positive_rate), expected[:2], strict=True
    ):
        np.testing.assert_allclose(found, np.nan_to_num(wanted))
    np.testing.assert_allclose(ranking.thresholds, expected[2][1:])
    # scikit-learn runs from the lowest threshold to the highest, and appends the point (0, 1).
    np.testing.assert_allclose(ranking.thresholds, thresholds[::-1])
    np.testing.assert_allclose(ranking.precision, precision[:-1][::-1])
    if truth.any():
        np.testing.assert_allclose(ranking.recall, recall[:-1][::-1])


@given(pairs=samples, level=st.sampled_from(LEVELS))
def test_operating_points_are_the_best_of_all_thresholds(
    pairs: list[tuple[bool, float]], level: float
) -> None:
    truth, scores = arrays(pairs)
    ranking = Ranking.of(truth, scores)
    tried = {}
    for threshold in np.unique(scores):
        chosen = scores >= threshold
        right = (chosen & truth).sum()
        tried[float(threshold)] = (right / chosen.sum(), right / truth.sum() if truth.any() else 0.0)
    recalls = [recall for precision, recall in tried.values() if precision >= level and truth.any()]
    precisions = [precision for precision, recall in tried.values() if recall >= level and truth.any()]
    for found, wanted in (
        (ranking.recall_at_precision(level), recalls),
        (ranking.precision_at_recall(level), precisions),
    ):
        if not wanted:
            assert (found.threshold, found.precision, found.recall) == (None, 0.0, 0.0)
            continue
        assert found.threshold is not None
        assert (found.precision, found.recall) == pytest.approx(tried[found.threshold])
    assert ranking.recall_at_precision(level).recall == pytest.approx(max(recalls, default=0.0))
    assert ranking.precision_at_recall(level).precision == pytest.approx(max(precisions, default=0.0))


def test_curves_without_samples_are_empty() -> None:
    ranking = Ranking.of(np.array([], bool), np.array([]))
    assert len(ranking.thresholds) == 0
    assert (ranking.roc_auc, ranking.average_precision) == (None, None)
    assert ranking.recall_at_precision(0.2).threshold is None
