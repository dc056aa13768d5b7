"""Folded texts, and the curves of two classes, in terminal, page and tables."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.toolkit.report.drawn import a_terminal
from tests.toolkit.report.parsed_page import Page, parse
from tests.toolkit.report.report_folders import write_config
from tests.toolkit.workloads.text_classification.report.classified_runs import (
    KIND,
    write_classes,
    write_classified,
    write_finished,
)
from toolkit.errors import DataError
from toolkit.report.model import RunSummary, to_json
from toolkit.report.rendering.terminal import show
from toolkit.report.rendering.writing import spreadsheets, write_report
from toolkit.report.run.document import run_document
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir
from toolkit.workloads.text_classification.artifacts.scores import write_labels
from toolkit.workloads.text_classification.files import ClassificationFiles

TEXTS = 60


@pytest.fixture(scope="module")
def mails(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Two classes, a third of the texts folded into three fragments."""
    run = write_finished(tmp_path_factory.mktemp("runs") / "mails-1f3a9c", ("ham", "spam"))
    write_classified(run, ("ham", "spam"), texts=TEXTS)
    return run


@pytest.fixture(scope="module")
def summary(mails: RunDir) -> RunSummary:
    return summarize(mails)


@pytest.fixture(scope="module")
def page(mails: RunDir) -> Page:
    return parse(write_report(mails).read_text(encoding="utf-8"))


def printed(summary: RunSummary, width: int = 80) -> str:
    console = a_terminal(width)
    show(run_document(summary), console)
    return console.export_text()


def classified(path: Path, labels: tuple[str, ...], folded: bool) -> RunDir:
    run = RunDir(path)
    write_config(run, kind=KIND)
    write_classified(run, labels, texts=TEXTS, folded=folded)
    return run


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_whole_texts_are_before_their_fragments(summary: RunSummary) -> None:
    assert [report.view.title for report in summary.own.classes.values()] == [
        "validation, whole texts",
        "validation, fragments",
        "test, whole texts",
        "test, fragments",
    ]
    texts, fragments = (summary.own.classes[name] for name in ("test_text", "test"))
    assert (texts.samples, fragments.samples) == (TEXTS, TEXTS // 3 * 3 + TEXTS // 3 * 2)
    assert list(summary.own.two_classes) == list(summary.own.classes)


def test_splits_are_in_the_order_of_their_use(new_run: RunDir) -> None:
    for split in ("test", "extra", "validation", "train"):
        write_classes(new_run, ["a", "b"], split=split)
    assert list(summarize(new_run).own.classes) == ["train", "validation", "test", "extra"]


def test_without_folded_texts_there_is_one_level(tmp_path: Path) -> None:
    summary = summarize(classified(tmp_path / "run-0", ("neg", "pos"), folded=False))
    assert [report.view.title for report in summary.own.classes.values()] == ["validation", "test"]
    assert not summary.own.labels.folded
    text = printed(summary)
    assert "fragments" not in text
    assert "Classes (test)" in text


def test_the_summary_is_strict_json(summary: RunSummary) -> None:
    document = json.loads(json.dumps(to_json(summary), allow_nan=False))
    assert document["classes"]["test_text"]["view"]["split"] == "test"
    assert document["classes"]["test"]["weighted_f1"] > 0.5
    assert document["two_classes"]["test"]["positive"] == "spam"
    assert [epoch["epoch"] for epoch in document["by_epoch"]] == [1, 2, 3]
    assert sum(document["labels"]["texts"]["train"]) == TEXTS


def test_the_terminal_shows_the_test_set_at_both_levels(summary: RunSummary) -> None:
    text = printed(summary)
    titles = [line.strip() for line in text.splitlines() if line.strip().startswith(("Classes", "Confusion"))]
    assert [title for title in titles if title.startswith("Classes")] == [
        "Classes (test, whole texts)",
        "Classes (test, fragments)",
    ]
    assert [title.partition(" (")[0] for title in titles] == ["Classes", "Confusion", "Confusion, %"] * 2


def test_the_terminal_shows_averages_correlation_and_thresholds(summary: RunSummary) -> None:
    text = printed(summary)
    report, curves = summary.own.classes["test_text"], summary.own.two_classes["test_text"]
    averages = (report.weighted_precision, report.weighted_recall, report.weighted_f1)
    weighted = [f"{100 * value:.2f}" for value in averages]
    expected = ["weighted", "average", weighted[0], "%", weighted[1], "%", weighted[2], "%", str(TEXTS)]
    assert expected in [line.split() for line in text.splitlines()]
    assert f"Matthews correlation {report.mcc:.4f} · {TEXTS} texts" in text
    assert "Thresholds on P(spam), test, whole texts" in text
    assert f"ROC AUC {curves.roc_auc:.4f} · average precision {curves.average_precision:.4f}" in text


def test_the_terminal_shows_labels_of_texts_and_of_fragments(summary: RunSummary) -> None:
    text = printed(summary)
    train = summary.own.labels.texts["train"]
    assert f"{train[0]}  {100 * train[0] / TEXTS:.1f} %" in text
    assert (
        text.index("Scores") < text.index("Epochs") < text.index("Labels") < text.index("Labels (fragments)")
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(summary: RunSummary, width: int) -> None:
    assert max(map(len, printed(summary, width).splitlines())) <= width


def test_the_page_shows_the_test_set_and_folds_the_validation_set(page: Page) -> None:
    wanted = ["test, whole texts", "test, fragments", "validation, whole texts", "validation, fragments"]
    assert [h for h in page.headings if h.startswith("Classes")] == [f"Classes ({view})" for view in wanted]
    assert "Classes, confusion and curves of validation" in page.text
    assert [h for h in page.headings if h.startswith("ROC")] == [
        "ROC, precision and recall (test)",
        "ROC, precision and recall (validation)",
    ]
    assert "Surest mistakes (test, whole texts)" in page.headings
    assert page.unclosed == []


def test_mistakes_on_fragments_do_not_replace_mistakes_on_whole_texts(mails: RunDir, tmp_path: Path) -> None:
    run = RunDir(shutil.copytree(mails.path, tmp_path / "run-0"))
    path = ClassificationFiles(run).predictions("test_text")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(lines[0], encoding="utf-8")
    assert list(summarize(run).own.mistakes()) == []


def test_the_page_has_thresholds_of_each_view(page: Page) -> None:
    found = [t for t in page.tables if t[0][:2] == ["at least", "recall at this precision"]]
    assert len(found) == 4
    assert [row[0] for row in found[0][1:]] == ["20 %", "40 %", "60 %", "80 %", "90 %"]


def test_the_page_counts_labels_with_shares_and_sums(page: Page, summary: RunSummary) -> None:
    tables = [t for t in page.tables if t[0] == ["label", "all", "train", "validation", "test"]]
    texts, fragments = tables
    assert texts[-1] == ["all", str(3 * TEXTS), *[str(TEXTS)] * 3]
    assert fragments[-1][2] == str(sum(summary.own.labels.samples["train"]))
    assert texts[1][0] == "ham"


def test_the_page_has_the_notes_about_labels_and_texts(tmp_path: Path) -> None:
    run = classified(tmp_path / "run-0", ("a", "A"), folded=False)
    codes = np.array([0, 1])
    write_labels(run, ("a", "A"), {"train": (codes, codes)}, ["2 texts stand in <b>train</b> and in test"])
    page = parse(write_report(run).read_text(encoding="utf-8"))
    assert "2 texts stand in <b>train</b> and in test" in page.text


def test_the_page_has_averages_and_areas(page: Page) -> None:
    classes = next(t for t in page.tables if t[0][0] == "class")
    assert classes[0] == ["class", "precision", "recall", "F1", "average precision", "ROC AUC", "support"]
    assert [row[0] for row in classes[1:]] == ["ham", "spam", "macro average", "weighted average"]


def test_report_writes_its_pictures_as_files(page: Page, mails: RunDir) -> None:
    pictures = {path.name for path in mails.report.glob("*.png")}
    assert pictures >= {"epochs.png", "labels.png", "curves_test.png", "curves_validation.png"}
    assert pictures >= {"confusion_test.png", "confusion_test_text.png"}


def test_csv_tables_have_the_values_of_the_artifacts(summary: RunSummary) -> None:
    sheets = spreadsheets(run_document(summary))
    counts, shares = (table(sheets[f"confusion_test_text{kind}.csv"]) for kind in ("", "_normalised"))
    assert counts[0] == shares[0] == ["true \\ predicted", "ham", "spam"]
    first = [int(value) for value in counts[1][1:]]
    assert [float(value) for value in shares[1][1:]] == pytest.approx([value / sum(first) for value in first])
    classes = {row[0]: row[1:] for row in table(sheets["classes_test.csv"])}
    assert float(classes["accuracy"][2]) == summary.own.classes["test"].accuracy
    assert float(classes["Matthews correlation"][2]) == summary.own.classes["test"].mcc
    (_, wrong), (missed, found) = summary.own.classes["test"].confusion
    assert classes["spam"][-3:] == [str(found), str(wrong), str(missed)]
    assert {len(row) for row in classes.values()} == {9}
    curves = table(sheets["curves_test.csv"])
    assert curves[1] == ["roc", "0.0", "0.0"]
    assert {row[0] for row in curves[1:]} == {"roc", "precision_recall"}
    assert table(sheets["labels.csv"])[0] == ["split", "label", "texts", "samples"]
    assert len(table(sheets["labels.csv"])) == 1 + 3 * 2
    epochs = table(sheets["epochs.csv"])
    assert [row[:2] for row in epochs[1:]] == [
        [str(n), s] for s in ("train", "validation") for n in (1, 2, 3)
    ]
    assert sheets["metrics.csv"].startswith("split,time,step,epoch,loss")


def test_eleven_classes_have_areas_but_no_curves(tmp_path: Path) -> None:
    run = classified(tmp_path / "run-0", tuple(f"topic number {n}" for n in range(11)), folded=True)
    summary = summarize(run)
    assert summary.own.two_classes == {}
    assert summary.own.classes["test"].roc_auc is not None
    assert "ROC AUC" in printed(summary, 80)
    assert "Thresholds" not in printed(summary, 80)


def test_a_class_without_samples_has_an_empty_row_of_shares(tmp_path: Path) -> None:
    run = classified(tmp_path / "run-0", ("a", "b"), folded=False)
    document = json.loads(ClassificationFiles(run).classes("test").read_text())
    document["confusion"] = [[0, 0], [1, 3]]
    ClassificationFiles(run).classes("test").write_text(json.dumps(document))
    summary = summarize(run)
    assert summary.own.classes["test"].shares == ((None, None), (0.25, 0.75))
    sheet = spreadsheets(run_document(summary))["confusion_test_normalised.csv"]
    assert table(sheet)[1] == ["a", "", ""]
    assert "–" in printed(summary).partition("Confusion, % (test)")[2].splitlines()[4]


@pytest.mark.parametrize("name", ["labels", "test_classes", "test_curves"])
def test_a_damaged_artifact_is_reported(tmp_path: Path, name: str) -> None:
    run = classified(tmp_path / "run-0", ("a", "b"), folded=False)
    path = run.artifact(f"{name}.json")
    path.write_text('{"splits": {"train": []}, "labels": ["a"]}')
    with pytest.raises(DataError, match=rf"{path.name}.*a report needs the file as the run wrote it"):
        summarize(run)


def test_report_of_an_old_run_leaves_out_labels_curves_and_averages(tmp_path: Path) -> None:
    """`write_finished` writes the files of old versions, without labels, curves and averages."""
    run = write_finished(tmp_path / "run-0")
    summary = summarize(run)
    assert (summary.own.labels, summary.own.two_classes) == (None, {})
    report = summary.own.classes["test"]
    assert (report.view.level, report.mcc, report.weighted_f1) == (None, None, None)
    text = printed(summary)
    assert "weighted average" not in text
    assert "Matthews" not in text
    assert "accuracy 80.00 % · 96 samples" in text


@pytest.mark.parametrize("text_accuracy, shown", [(0.7912, False), (0.85, True)])
def test_scores_of_whole_texts_are_shown_if_they_differ(
    tmp_path: Path, text_accuracy: float, shown: bool
) -> None:
    run = write_finished(tmp_path / "run-0")
    result = json.loads(run.result.read_text())
    result["metrics"]["validation"]["text_accuracy"] = result["metrics"]["validation"]["accuracy"]
    result["metrics"]["test"]["text_accuracy"] = text_accuracy
    run.result.write_text(json.dumps(result))
    assert ("text accuracy" in printed(summarize(run))) == shown


@pytest.mark.filterwarnings("error::UserWarning", "error::RuntimeWarning", "error::DeprecationWarning")
def test_hostile_labels_are_text_in_terminal_and_page(tmp_path: Path) -> None:
    labels = ("<script>x()</script>", "[bold]$x^{$\x1b")
    run = classified(tmp_path / "run-0", labels, folded=True)
    text, page = printed(summarize(run)), parse(write_report(run).read_text(encoding="utf-8"))
    assert "Thresholds on P([bold]$x^{$␛), test, whole texts" in text
    assert "\x1b" not in text
    assert "Thresholds on P([bold]$x^{$␛), test, whole texts" in page.text
    assert "script" not in page.tags
    assert [row[0] for row in next(t for t in page.tables if t[0][0] == "label")[1:3]] == [
        "<script>x()</script>",
        "[bold]$x^{$␛",
    ]
