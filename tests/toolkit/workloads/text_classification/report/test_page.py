"""Classes, confusions and mistakes on the page."""

from __future__ import annotations

import base64

import pytest

from tests.toolkit.report.parsed_page import Page, parse
from tests.toolkit.workloads.text_classification.report.classified_runs import (
    write_classes,
    write_finished,
    write_predictions,
)
from toolkit.report.rendering.writing import write_report
from toolkit.run.run_dir import RunDir


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = write_finished(tmp_path_factory.mktemp("runs") / "sst2-1f3a9c")
    write_report(run)
    return run


@pytest.fixture(scope="module")
def page(run: RunDir) -> Page:
    return parse(run.report_html.read_text(encoding="utf-8"))


def test_classes_and_mistakes_are_between_the_epochs_and_the_time(page: Page) -> None:
    own = ["Classes (test)", "Surest mistakes (test)"]
    assert page.headings[3:7] == ["Epochs", *own, "Where the time went"]


def test_the_confusion_matrix_has_counts_and_shares_of_the_true_class(page: Page) -> None:
    assert page.table_with("true ╲ predicted", "negative", "positive") == [
        ["negative", "40|85.1 %", "7|14.9 %"],
        ["positive", "8|16.3 %", "41|83.7 %"],
    ]


def test_the_surest_mistakes_come_first(page: Page) -> None:
    assert page.table_with("row_index", "text") == [
        ["2", "surely <b>wrong</b> & sorry", "positive", "negative", "98.0 %", "2.0 %"],
        ["1", "a little unsure", "negative", "positive", "69.8 %", "30.1 %"],
    ]
    assert "artifacts/test_predictions.tsv" in page.text


def test_a_matrix_too_wide_for_a_page_is_replaced_by_picture_and_confusions(new_run: RunDir) -> None:
    write_classes(new_run, [f"class_{number:02d}" for number in range(13)])
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    picture = (new_run.report / "confusion_test.png").read_bytes()
    assert [base64.b64decode(source.partition(",")[2]) for source in page.pictures] == [picture]
    assert page.table_with("true", "predicted", "samples")[0] == ["class_12", "class_00", "19"]
    assert len(page.table_with("class", "precision")) == 14


def test_mistakes_of_the_validation_set_are_shown_before_the_test(new_run: RunDir) -> None:
    row = ("neg", "pos", [-0.1, -2.4], "x" * 2000)
    write_predictions(new_run, [row], split="validation")
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    assert "Surest mistakes (validation)" in page.headings
    ((_, text, *_),) = page.table_with("row_index", "text")
    assert text == "x" * 599 + "…"
