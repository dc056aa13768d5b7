from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

import matplotlib.image
import pytest

from tests.toolkit.report.parsed_page import Page, parse
from tests.toolkit.report.report_folders import (
    write_attempts,
    write_classes,
    write_failure,
    write_finished,
    write_metrics,
    write_predictions,
)
from toolkit.report import compare, write_comparison, write_report
from toolkit.rundir import RunDir

HOSTILE = ["<script>x()</script>", '"><img src=x onerror=x()>', "a & b", "日本語", "\x1b\u202e'"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = write_finished(tmp_path_factory.mktemp("runs") / "sst2-1f3a9c")
    write_report(run)
    return run


@pytest.fixture(scope="module")
def page(run: RunDir) -> Page:
    return parse(run.report_html.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    run = write_finished(tmp_path_factory.mktemp("runs") / 'run-<b>&"0', HOSTILE)
    run.config.write_text("name: '<script>x()</script>'\n")
    return parse(write_report(run).read_text(encoding="utf-8"))


def test_the_page_and_its_neighbours_lie_in_the_report_folder(run: RunDir) -> None:
    names = {path.name for path in run.report.iterdir()}
    pictures = {"loss.png", "accuracy.png", "learning_rate.png", "epochs.png", "confusion_test.png"}
    tables = {"metrics.csv", "epochs.csv", "classes_test.csv", "starts.csv"}
    confusions = {"confusion_test.csv", "confusion_test_normalised.csv"}
    documents = {"report.html", "report.json", "report.md", "timeline.png"}
    assert names == {*documents, *pictures, *tables, *confusions}


def test_nothing_is_written_outside_the_report_folder(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()}
    write_report(run)
    after = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} == set(run.report.iterdir())


def test_the_same_folder_gives_the_same_page(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0")
    assert write_report(run).read_bytes() == write_report(run).read_bytes()


def test_every_element_is_closed(page: Page, hostile_page: Page) -> None:
    assert page.unclosed == hostile_page.unclosed == []


def test_the_page_loads_nothing_and_runs_nothing(page: Page, hostile_page: Page) -> None:
    for each in (page, hostile_page):
        assert all(address.startswith("data:image/png;base64,") for address in each.addresses)
        assert not each.tags & {"script", "link", "iframe", "object", "form", "base"}
        assert not [name for name in each.attributes if name.startswith("on")]


def test_headings_follow_the_readers_questions(page: Page) -> None:
    assert page.title == "sst2-1f3a9c"
    assert page.headings == [
        "sst2-1f3a9c",
        "Scores",
        "Curves",
        "Epochs",
        "Classes (test)",
        "Confusion (test)",
        "Surest mistakes (test)",
        "Where the time went",
        "Memory, CPUs and GPUs",
        "Starts",
    ]


def test_the_tables_hold_the_scores(page: Page) -> None:
    scores = {row[0]: row[1:] for row in page.table_with("metric", "train", "validation", "test")}
    assert scores["loss"][1:] == ["0.4000", "0.4312"]
    assert scores["accuracy"][1:] == ["80.00 %", "79.12 %"]
    assert scores["macro F1"] == ["–", "78.50 %", "78.50 %"]
    classes = page.table_with("class", "precision")
    assert classes == [
        ["negative", "83.33 %", "85.11 %", "84.21 %", "47"],
        ["positive", "85.42 %", "83.67 %", "84.54 %", "49"],
        ["macro average", "84.38 %", "84.39 %", "84.37 %", "96"],
    ]


def test_the_confusion_matrix_has_counts_and_shares_of_the_true_class(page: Page) -> None:
    assert page.table_with("true ╲ predicted", "negative", "positive") == [
        ["negative", "40|85.1 %", "7|14.9 %"],
        ["positive", "8|16.3 %", "41|83.7 %"],
    ]


def test_the_surest_mistakes_come_first(page: Page) -> None:
    assert page.table_with("row", "text") == [
        ["2", "surely <b>wrong</b> & sorry", "positive", "negative", "98.0 %", "2.0 %"],
        ["1", "a little unsure", "negative", "positive", "69.8 %", "30.1 %"],
    ]


def test_every_start_has_a_row(page: Page) -> None:
    first, second = page.table_with("start", "job")
    assert first == [
        "0",
        "4711",
        "node01, node02",
        "4 × cuda",
        "0 to 150",
        "2026-05-28 20:26:40 UTC",
        "2 min 30 s",
        "SIGTERM: preempted",
    ]
    assert second[2:5] == ["node07", "2 × cuda", "140 to 300"]
    assert "Events: save (1)" in page.text


def test_the_configuration_stands_there_as_written(page: Page, run: RunDir) -> None:
    assert run.config.read_text() in page.text


def test_the_pictures_are_the_files_beside_the_page(page: Page, run: RunDir) -> None:
    inlined = [base64.b64decode(source.partition(",")[2]) for source in page.pictures]
    names = ("loss.png", "accuracy.png", "learning_rate.png", "epochs.png", "timeline.png")
    assert inlined == [(run.report / name).read_bytes() for name in names]


def test_each_picture_has_a_dark_double_of_the_same_size(page: Page) -> None:
    images = [
        matplotlib.image.imread(io.BytesIO(base64.b64decode(address.partition(",")[2])))
        for address in page.addresses
    ]
    assert len(images) == 10
    for dark, light in zip(images[::2], images[1::2], strict=True):
        assert dark.shape == light.shape
        assert dark[:, :, :3].mean() < 0.3 < 0.8 < light[:, :, :3].mean()


def test_labels_texts_and_names_are_escaped(hostile_page: Page) -> None:
    shown = ["<script>x()</script>", '"><img src=x onerror=x()>', "a & b", "日本語", "␛�'"]
    assert [row[0] for row in hostile_page.table_with("class", "precision")][:-1] == shown
    assert hostile_page.title == 'run-<b>&"0'
    assert "name: '<script>x()</script>'" in hostile_page.text
    assert len(hostile_page.pictures) == 5


def test_a_table_too_big_for_a_page_gives_way_to_the_picture_and_the_worst_cells(new_run: RunDir) -> None:
    write_classes(new_run, [f"class_{number:02d}" for number in range(13)])
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    picture = (new_run.report / "confusion_test.png").read_bytes()
    assert [base64.b64decode(source.partition(",")[2]) for source in page.pictures] == [picture]
    assert page.table_with("true", "predicted", "samples")[0] == ["class_12", "class_00", "19"]
    assert len(page.table_with("class", "precision")) == 14


def test_a_run_that_has_just_begun_has_a_page(new_run: RunDir) -> None:
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    assert "pending" in page.text
    assert "nothing recorded yet" in page.text
    assert page.tables == []


def test_a_failed_run_shows_its_error(new_run: RunDir) -> None:
    write_metrics(new_run)
    write_attempts(new_run, finished=False)
    write_failure(new_run, message="<b>bad</b>\nthing")
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    assert page.headings[1] == "Failure"
    assert "OutOfMemoryError: <b>bad</b>\nthing" in page.text
    assert "rank 3 on node07 in phase backward at step 151" in page.text
    assert "loss.backward()" in page.text


def test_mistakes_are_those_of_the_validation_set_until_there_is_a_test(new_run: RunDir) -> None:
    row = ("neg", "pos", [-0.1, -2.4], "x" * 2000)
    write_predictions(new_run, [row], split="validation")
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    assert "Surest mistakes (validation)" in page.headings
    ((_, text, *_),) = page.table_with("row", "text")
    assert text == "x" * 599 + "…"


def test_the_summary_lies_beside_the_page_as_json(run: RunDir) -> None:
    document = json.loads((run.report / "report.json").read_text(encoding="utf-8"))
    assert (document["state"], document["step"]) == ("finished", 300)
    assert document["scores"]["test"]["macro_f1"] == 0.785


def test_the_metrics_lie_beside_the_page_as_csv(run: RunDir) -> None:
    with open(run.report / "metrics.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["split"] for row in rows] == ["train"] * 30 + ["validation"] * 3
    assert (rows[0]["step"], rows[0]["lr"], rows[0]["macro_f1"]) == ("10", "0.0009666666666666667", "")
    assert (rows[-1]["step"], rows[-1]["macro_f1"], rows[-1]["lr"]) == ("300", "0.805", "")


def test_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = [write_finished(tmp_path / f"sst2-{name}", lr=lr) for name, lr in (("<a>", 0.001), ("b", 0.01))]
    path = write_comparison(compare(runs), tmp_path / "new" / "comparison.html")
    page = parse(path.read_text(encoding="utf-8"))
    assert page.unclosed == []
    first, second = page.table_with("run", "state", "step", "best accuracy")
    assert first == [
        "sst2-<a>",
        "finished",
        "300",
        "80.00 % @ 200",
        "0.4312",
        "79.12 %",
        "78.50 %",
        "5 min 00 s",
    ]
    assert second[0] == "sst2-b"
    assert page.table_with("key", "sst2-<a>", "sst2-b") == [["optimizer.lr", "0.001", "0.01"]]
    # Five curves of the validation, that of the training, the time lines, and a confusion matrix each.
    assert len(page.pictures) == 5 + 1 + 1 + 2
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert not runs[0].report.exists()
