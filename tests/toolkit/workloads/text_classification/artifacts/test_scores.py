from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as sklearn

from tests.toolkit.workloads.text_classification.artifacts.made import predictions
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.artifacts.predictions import Predictions
from toolkit.workloads.text_classification.artifacts.scores import write_classes, write_curves, write_labels
from toolkit.workloads.text_classification.files import ClassificationFiles


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path)
    run.artifacts.mkdir()
    return run


def drawn(samples: int, classes: int) -> Predictions:
    generator = np.random.default_rng(3)
    truth = generator.integers(0, classes, samples)
    probabilities = generator.dirichlet(np.ones(classes), samples)
    probabilities[np.arange(samples), truth] += 0.3
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return predictions(
        probabilities.tolist(), truth.tolist(), labels=tuple(f"topic {c}" for c in range(classes))
    )


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one")  # they are float32
def test_classes_have_all_scores_with_one_value_per_class(run: RunDir) -> None:
    made = drawn(300, 4)
    write_classes(run, made)
    document = read_json(ClassificationFiles(run).classes("test"))
    assert (document["split"], document["level"], document["samples"]) == ("test", "text", 300)
    truth, scores = made.truth, made.probabilities
    for code, row in enumerate(document["classes"]):
        assert row["roc_auc"] == pytest.approx(sklearn.roc_auc_score(truth == code, scores[:, code]))
        expected = sklearn.average_precision_score(truth == code, scores[:, code])
        assert row["average_precision"] == pytest.approx(expected)
        assert [point["at"] for point in row["recall_at_precision"]] == [0.2, 0.4, 0.6, 0.8, 0.9]
        assert [point["at"] for point in row["precision_at_recall"]] == [0.2, 0.4, 0.6, 0.8, 0.9]
    expected = sklearn.roc_auc_score(truth, scores, multi_class="ovr", average="macro")
    assert document["roc_auc"] == pytest.approx(expected)
    assert document["mcc"] == pytest.approx(sklearn.matthews_corrcoef(truth, made.predicted))
    assert document["loss"] == pytest.approx(sklearn.log_loss(truth, scores))


def test_areas_of_two_classes_are_those_of_the_second_class(run: RunDir) -> None:
    made = drawn(100, 2)
    write_classes(run, made)
    document = read_json(ClassificationFiles(run).classes("test"))
    assert document["average_precision"] == document["classes"][1]["average_precision"]
    assert document["average_precision"] != document["classes"][0]["average_precision"]


def test_a_class_without_samples_has_no_areas(run: RunDir) -> None:
    write_classes(run, predictions([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1]], [0, 1], labels=("a", "b", "c")))
    document = read_json(ClassificationFiles(run).classes("test"))
    absent = document["classes"][2]
    assert (absent["support"], absent["roc_auc"], absent["average_precision"]) == (0, None, None)
    assert document["roc_auc"] == 1.0


def test_curves_are_those_of_the_second_class(run: RunDir) -> None:
    write_curves(run, predictions([[0.1, 0.9], [0.4, 0.6], [0.7, 0.3]], [1, 0, 1]))
    document = read_json(ClassificationFiles(run).curves("test"))
    assert (document["positive"], document["positives"], document["negatives"]) == ("spam", 2, 1)
    assert document["roc"] == {
        "false_positive_rate": [0.0, 0.0, 1.0, 1.0],
        "true_positive_rate": [0.0, 0.5, 0.5, 1.0],
        "threshold": [None, *(pytest.approx(value, abs=1e-6) for value in (0.9, 0.6, 0.3))],
    }
    assert document["precision_recall"]["precision"] == pytest.approx([1.0, 0.5, 2 / 3], abs=1e-6)
    assert document["precision_recall"]["recall"] == [0.5, 0.5, 1.0]
    assert document["roc_auc"] == 0.5
    at_most = {point["at"]: point["recall"] for point in document["recall_at_precision"]}
    assert at_most == {0.2: 1.0, 0.4: 1.0, 0.6: 1.0, 0.8: 0.5, 0.9: 0.5}


def test_more_than_two_classes_have_no_curves(run: RunDir) -> None:
    write_curves(run, drawn(30, 3))
    assert not ClassificationFiles(run).curves("test").exists()


def test_long_curves_are_thinned_without_changing_their_shape(run: RunDir) -> None:
    made = drawn(20_000, 2)
    write_curves(run, made)
    document = read_json(ClassificationFiles(run).curves("test"))
    roc = document["roc"]
    assert 200 < len(roc["threshold"]) <= 400
    assert (roc["false_positive_rate"][-1], roc["true_positive_rate"][-1]) == (1.0, 1.0)
    area = sklearn.auc(roc["false_positive_rate"], roc["true_positive_rate"])
    assert area == pytest.approx(document["roc_auc"], abs=2e-3)
    assert len(document["precision_recall"]["recall"]) <= 400
    assert document["precision_recall"]["recall"][-1] == 1.0


def test_labels_are_counted_by_sample_and_by_text(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "new")
    splits = {
        "train": (np.array([0, 0, 0, 2]), np.array([5, 5, 6, 8])),
        "test": (np.array([], dtype=np.int32), np.array([], dtype=np.int64)),
    }
    write_labels(run, ("a", "b", "c"), splits)
    assert read_json(ClassificationFiles(run).labels) == {
        "labels": ["a", "b", "c"],
        "splits": {
            "train": {"samples": [3, 0, 1], "texts": [2, 0, 1]},
            "test": {"samples": [0, 0, 0], "texts": [0, 0, 0]},
        },
    }
