from __future__ import annotations

import base64
import csv
import io
import json
import os
from pathlib import Path

import matplotlib.image
import pytest

from tests.toolkit.report.parsed_page import Page, parse
from tests.toolkit.report.report_folders import write_finished
from toolkit.errors import DataError
from toolkit.report.rendering.writing import write_report
from toolkit.run.run_dir import RunDir

HOSTILE = ["<script>x()</script>", '"><img src=x onerror=x()>', "a & b", "日本語", "\x1b\u202e'"]
HOSTILE_CONFIG = "name: '<script>x()</script>'\ntask:\n  kind: toy_texts\n"


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
    run.config.write_text(HOSTILE_CONFIG)
    return parse(write_report(run).read_text(encoding="utf-8"))


def test_the_report_folder_contains_documents_pictures_and_tables(run: RunDir) -> None:
    names = {path.name for path in run.report.iterdir()}
    pictures = {"loss.png", "accuracy.png", "learning_rate.png", "epochs.png", "timeline.png"}
    tables = {"metrics.csv", "epochs.csv", "labels_test.csv", "starts.csv"}
    documents = {"report.html", "report.json", "report.md"}
    assert names == documents | pictures | tables


def test_nothing_is_written_outside_the_report_folder(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0")
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()}
    write_report(run)
    after = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} == set(run.report.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make links of others")
def test_a_report_folder_that_is_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0")
    precious = tmp_path / "precious"
    precious.mkdir()
    run.report.symlink_to(precious)
    os.lchown(run.report, 65534, 65534)
    with pytest.raises(DataError, match="a link of another user's"):
        write_report(run)
    assert not list(precious.iterdir())


@pytest.mark.slow
def test_the_same_folder_gives_the_same_page(run: RunDir) -> None:
    before = run.report_html.read_bytes()
    assert write_report(run).read_bytes() == before


def test_the_page_is_whole_loads_nothing_and_runs_nothing(page: Page, hostile_page: Page) -> None:
    for each in (page, hostile_page):
        assert each.unclosed == []
        assert all(address.startswith("data:image/png;base64,") for address in each.addresses)
        assert not each.tags & {"script", "link", "iframe", "object", "form", "base"}
        assert not [name for name in each.attributes if name.startswith("on")]


def test_headings_are_in_their_fixed_order(page: Page) -> None:
    assert page.title == "sst2-1f3a9c"
    scores = ["Scores", "Curves", "Epochs", "Labels of test"]
    costs = ["Where the time went", "Memory, CPUs and GPUs", "Attempts"]
    assert page.headings == ["sst2-1f3a9c", *scores, *costs]


def test_the_tables_contain_the_scores(page: Page) -> None:
    scores = {
        row[0]: row[1:] for row in page.table_with("metric", "train, mean over epoch 3", "validation", "test")
    }
    assert scores["loss"] == ["0.1976", "0.4000", "0.4312"]
    assert scores["accuracy"][1:] == ["80.00 %", "79.12 %"]
    assert scores["macro F1"] == ["–", "78.50 %", "78.50 %"]
    labels = ("negative", "positive")
    pairs = [[label, predicted, "1"] for label in labels for predicted in labels]
    assert page.table_with("label", "predicted") == pairs


def test_every_attempt_has_a_row(page: Page) -> None:
    first, second = page.table_with("attempt", "job")
    assert first[:5] == ["0", "4711", "node01, node02", "4 × cuda", "0 to 150"]
    assert first[5:] == ["2026-05-28 20:26:40 UTC", "2 min 30 s", "SIGTERM: preempted"]
    assert second[2:5] == ["node07", "2 × cuda", "140 to 300"]
    assert "Events: save (1)" in page.text


def test_the_pictures_are_the_files_beside_the_page(page: Page, run: RunDir) -> None:
    inlined = [base64.b64decode(source.partition(",")[2]) for source in page.pictures]
    names = ("loss.png", "accuracy.png", "learning_rate.png", "epochs.png", "timeline.png")
    assert inlined == [(run.report / name).read_bytes() for name in names]


def test_each_picture_has_a_dark_version_of_the_same_size(page: Page) -> None:
    images = [
        matplotlib.image.imread(io.BytesIO(base64.b64decode(address.partition(",")[2])))
        for address in page.addresses
    ]
    assert len(images) == 10
    for dark, light in zip(images[::2], images[1::2], strict=True):
        assert dark.shape == light.shape
        assert dark[:, :, :3].mean() < 0.3 < 0.8 < light[:, :, :3].mean()


def test_labels_names_and_the_config_are_escaped(hostile_page: Page) -> None:
    shown = ["<script>x()</script>", '"><img src=x onerror=x()>', "a & b", "日本語", "␛�'"]
    assert {row[0] for row in hostile_page.table_with("label", "predicted")} == set(shown)
    assert hostile_page.title == 'run-<b>&"0'
    assert HOSTILE_CONFIG in hostile_page.text
    assert len(hostile_page.pictures) == 5


def test_a_new_run_has_a_page(new_run: RunDir) -> None:
    page = parse(write_report(new_run).read_text(encoding="utf-8"))
    assert "pending" in page.text
    assert "nothing recorded yet" in page.text
    assert page.tables == []


def test_a_run_of_a_missing_task_has_a_report_without_the_sections_of_the_task(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0", kind="of_somebody_else")
    page = parse(write_report(run).read_text(encoding="utf-8"))
    assert page.headings[1:5] == ["Scores", "Curves", "Epochs", "Where the time went"]
    assert "accuracy" in [row[0] for row in page.table_with("metric")]
    document = json.loads((run.report / "report.json").read_text(encoding="utf-8"))
    assert (document["step"], "labels" in document) == (300, False)
    assert {path.name for path in run.report.glob("*.csv")} == {"metrics.csv", "epochs.csv", "starts.csv"}


def test_the_metrics_are_written_as_csv(run: RunDir) -> None:
    with open(run.report / "metrics.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["split"] for row in rows] == ["train"] * 30 + ["validation"] * 3
    assert (rows[0]["step"], rows[0]["lr"], rows[0]["macro_f1"]) == ("10", "0.0009666666666666667", "")
    assert (rows[-1]["step"], rows[-1]["macro_f1"], rows[-1]["lr"]) == ("300", "0.805", "")
