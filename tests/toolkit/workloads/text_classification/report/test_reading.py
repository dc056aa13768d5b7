"""Reading the scores of classes that a run left."""

from __future__ import annotations

import pytest

from tests.toolkit.workloads.text_classification.report.classified_runs import write_classes
from toolkit.errors import DataError
from toolkit.files import append_json_line
from toolkit.report import summarize
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.files import ClassificationFiles


def test_damaged_class_scores_are_named(new_run: RunDir) -> None:
    write_classes(new_run, ["a", "b"])
    ClassificationFiles(new_run).classes("test").write_text('{"labels": ["a", "b"]}')
    with pytest.raises(DataError, match=r"test_classes\.json"):
        summarize(new_run)


def test_the_most_frequent_confusions_come_first(new_run: RunDir) -> None:
    write_classes(new_run, ["a", "b", "c"])
    report = summarize(new_run).own.classes["test"]
    assert report.confusions(2) == [("c", "a", 9), ("b", "c", 8)]


def test_splits_stand_in_the_order_of_their_use(new_run: RunDir) -> None:
    for split in ("test", "extra", "validation", "train"):
        append_json_line(new_run.metrics, {"step": 1, "split": split, "loss": 1.0})
        write_classes(new_run, ["a", "b"], split=split)
    assert list(summarize(new_run).own.classes) == ["train", "validation", "test", "extra"]
