from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.workloads.text_classification.artifacts.made import FOLDED, predictions
from tests.toolkit.workloads.text_classification.artifacts.test_prediction_tables import read
from toolkit.files import append_json_line, read_json
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.artifacts.evaluation import (
    write_evaluation,
    write_train_test_stats,
)
from toolkit.workloads.text_classification.artifacts.predictions import Predictions
from toolkit.workloads.text_classification.files import ClassificationFiles


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path)
    for step, epoch in ((10, 1.0), (20, 2.0)):
        head = {"step": step, "epoch": epoch}
        append_json_line(run.metrics, {**head, "split": "train", "loss": 1 / step, "accuracy": 0.5})
        append_json_line(run.metrics, {**head, "split": "validation", "loss": 2 / step, "accuracy": 0.6})
    return run


def write(run: RunDir, made: Predictions) -> None:
    write_evaluation(
        run,
        made,
        root="mails",
        pooling="mean",
        texts=lambda rows: [f"fragment {row}" for row in rows],
        sources=lambda texts: [f"whole {text}" for text in texts],
    )


def files(run: RunDir) -> set[str]:
    return {path.name for path in run.artifacts.iterdir()}


def statistics(run: RunDir) -> Any:
    return read_json(ClassificationFiles(run).train_test_stats("mails"))


def test_the_test_set_has_the_files_of_bert_train_parallel(run: RunDir) -> None:
    write(run, predictions([[0.1, 0.9], [0.4, 0.6]], [1, 0]))
    assert files(run) == {
        "mails_testset_predictions.csv",
        "mails_train_test_stats.json",
        "test_classes.json",
        "test_curves.json",
        "test_predictions.tsv",
    }


def test_folded_texts_have_files_of_both_levels(run: RunDir) -> None:
    write(run, FOLDED)
    assert files(run) >= {
        "mails_testset_predictions.csv",
        "mails_testset_text_predictions.csv",
        "test_text_classes.json",
        "test_text_curves.json",
        "test_text_predictions.tsv",
    }
    tables = ClassificationFiles(run)
    texts = read(tables.testset_predictions("mails", whole_texts=True))
    columns = ("text_id", "text", "fragments", "sample", "true_label", "P(ham)", "P(spam)")
    assert [tuple(row[name] for name in columns) for row in texts] == [
        ("4", "whole 4", "2", "100", "1", "0.35", "0.65"),
        ("9", "whole 9", "1", "102", "0", "0.8", "0.2"),
        ("7", "whole 7", "2", "103", "1", "0.8", "0.2"),
    ]
    assert read(tables.testset_predictions("mails"))[0]["text"] == "fragment 0"


def test_statistics_have_the_keys_of_bert_train_parallel(run: RunDir) -> None:
    write(run, FOLDED)
    document = statistics(run)
    assert document["Training"][0] == {
        "epoch": 1,
        "Training Loss": 0.1,
        "Validation Loss": 0.2,
        "Training Accuracy": 0.5,
        "Validation Accuracy": 0.6,
    }
    assert [row["epoch"] for row in document["Training"]] == [1, 2]
    assert document["Testing"] == {
        "Test Loss": pytest.approx(FOLDED.loss),
        "Test Accuracy": 0.4,
        "Matthews corrcoef": FOLDED.classification().matthews,
    }
    assert document["Testing (texts)"]["Test Accuracy"] == pytest.approx(2 / 3)


def test_statistics_of_an_epoch_weight_its_lines_by_samples(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for step, loss, count in ((10, 0.2, 30), (20, 0.6, 10)):
        line = {"step": step, "epoch": step / 20, "split": "train", "loss": loss, "count": count}
        append_json_line(run.metrics, {**line, "accuracy": loss})
    write(run, FOLDED)
    (row,) = statistics(run)["Training"]
    assert row["Training Loss"] == row["Training Accuracy"] == pytest.approx(0.3)


def test_the_validation_set_has_no_files_of_the_test_set(run: RunDir) -> None:
    write(run, dataclasses.replace(FOLDED, split="validation"))
    assert not [name for name in files(run) if "testset" in name]
    assert statistics(run)["Testing"] == {}


@pytest.mark.parametrize("splits", [("validation", "test"), ("test", "validation")])
def test_statistics_have_the_test_set_in_any_order_of_the_splits(
    run: RunDir, splits: tuple[str, ...]
) -> None:
    for split in splits:
        write(run, dataclasses.replace(FOLDED, split=split))
    assert statistics(run)["Testing"]["Test Accuracy"] == 0.4


def test_run_without_metrics_has_statistics_without_epochs(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.artifacts.mkdir()
    write_train_test_stats(run, "mails", ())
    assert statistics(run) == {"Training": [], "Testing": {}}


def test_loss_that_was_not_finite_is_null_in_the_statistics(run: RunDir) -> None:
    append_json_line(run.metrics, {"step": 9, "epoch": 9.0, "split": "train", "loss": None})
    write(run, FOLDED)
    assert statistics(run)["Training"][-1]["Training Loss"] is None


def test_the_same_predictions_give_the_same_bytes(run: RunDir) -> None:
    write(run, FOLDED)
    before = {path.name: path.read_bytes() for path in run.artifacts.iterdir()}
    write(run, FOLDED)
    assert {path.name: path.read_bytes() for path in run.artifacts.iterdir()} == before
