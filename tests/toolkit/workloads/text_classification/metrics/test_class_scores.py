"""Scores of a classifier equal scikit-learn's."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sklearn

from toolkit.workloads.text_classification.metrics.class_scores import MOST_CONFUSIONS, Classification

confusions = st.integers(1, 6).flatmap(
    lambda classes: hnp.arrays(np.int64, (classes, classes), elements=st.integers(0, 30) | st.just(0))
)


def classification(confusion: np.ndarray) -> Classification:
    labels, cells = tuple(f"label {i}" for i in range(len(confusion))), np.flatnonzero(confusion)
    sums = (confusion.sum(axis=1), confusion.sum(axis=0), confusion.diagonal())
    return Classification(labels, *sums, cells, confusion.ravel()[cells])


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(confusion=confusions)
def test_scores_equal_scikit_learn(confusion: np.ndarray) -> None:
    scores = classification(confusion)
    truth, predicted = (np.repeat(axis.ravel(), confusion.ravel()) for axis in np.indices(confusion.shape))
    counted = Classification.of(scores.labels, truth.astype(np.int32), predicted)
    np.testing.assert_array_equal(counted.confusion, confusion)
    if len(truth) == 0:
        assert scores.accuracy == 0.0
        assert scores.macro() == {"macro_precision": 0.0, "macro_recall": 0.0, "macro_f1": 0.0}
        return
    assert scores.accuracy == pytest.approx(sklearn.accuracy_score(truth, predicted))
    labels = list(range(len(confusion)))
    expected = sklearn.precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0)
    found = [(s.precision, s.recall, s.f1, s.support) for s in scores.classes()]
    np.testing.assert_allclose(np.array(found).T, np.array(expected))
    macro = sklearn.precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    assert list(scores.macro().values()) == pytest.approx(list(macro[:3]))
    weighted = sklearn.precision_recall_fscore_support(truth, predicted, average="weighted", zero_division=0)
    assert list(scores.weighted().values()) == pytest.approx(list(weighted[:3]))
    assert scores.matthews == pytest.approx(sklearn.matthews_corrcoef(truth, predicted), abs=1e-12)
    shares = sklearn.confusion_matrix(truth, predicted, labels=labels, normalize="true")
    np.testing.assert_allclose(scores.normalised, shares)


def test_matthews_correlation_of_very_many_samples_does_not_cancel_out() -> None:
    half = 5 * 10**8
    assert classification(np.array([[half, 0], [1, half]])).matthews == pytest.approx(1 - 2e-9, abs=1e-9)
    assert classification(np.array([[half, half], [half, half]])).matthews == 0.0


def test_json_holds_the_matrix_and_every_score() -> None:
    stored = json.loads(json.dumps(classification(np.array([[2, 1], [0, 3]])).to_json()))
    assert stored["confusion"] == [[2, 1], [0, 3]]
    assert stored["labels"] == ["label 0", "label 1"]
    assert stored["accuracy"] == pytest.approx(5 / 6)
    assert [row["support"] for row in stored["classes"]] == [3, 3]
    positives = [
        (row["true_positives"], row["false_positives"], row["false_negatives"]) for row in stored["classes"]
    ]
    assert positives == [(2, 0, 1), (3, 1, 0)]
    assert stored["normalised"] == [[0.666667, 0.333333], [0.0, 1.0]]
    assert {"macro_precision", "macro_recall", "macro_f1", "weighted_f1", "mcc"} <= stored.keys()


def test_very_many_classes_are_scored_without_a_matrix() -> None:
    """The matrix of 20,000 classes would take 3 GB, and four times that as JSON."""
    labels = [f"label {number}" for number in range(20_000)]
    truth = np.arange(20_000)
    predicted = np.where(truth % 4 == 0, 1, truth)
    tracemalloc.start()
    document = Classification.of(labels, truth, predicted).to_json()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 100e6
    assert document["accuracy"] == 0.75
    assert document["confusion"] is None
    assert document["confusions"][0] == ("label 0", "label 1", 1)
    assert len(document["confusions"]) == MOST_CONFUSIONS
    assert len(document["classes"]) == 20_000


@given(confusion=confusions)
def test_confusions_are_the_largest_cells_outside_the_diagonal(confusion: np.ndarray) -> None:
    found = classification(confusion).confusions(3)
    wrong = confusion - np.diag(np.diag(confusion))
    assert [count for *_, count in found] == sorted(wrong[wrong > 0].tolist(), reverse=True)[:3]
