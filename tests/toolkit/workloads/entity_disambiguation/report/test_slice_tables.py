"""Slices in the report: tables, plots, page, spreadsheets, and several runs side by side."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.toolkit.report.drawn import printed, run_plots
from tests.toolkit.report.parsed_page import Page, parse
from tests.toolkit.report.report_folders import write_finished
from tests.toolkit.report.test_report_plots import count_of, pixels
from tests.toolkit.workloads.entity_disambiguation.report.disambiguation_runs import (
    SLICES,
    write_disambiguation,
)
from toolkit.errors import DataError
from toolkit.files import append_json_line, read_json, write_json
from toolkit.report.comparison.document import write_comparison
from toolkit.report.comparison.reading import compare
from toolkit.report.plotting.themes import DARK, LIGHT, Theme
from toolkit.report.rendering.writing import write_report
from toolkit.report.run.summary import summarize
from toolkit.run.run_dir import RunDir
from toolkit.workloads.entity_disambiguation.files import DisambiguationFiles


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return write_disambiguation(tmp_path / "wordnet-1f3a9c", outside=120)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """The same run with its report."""
    run = write_disambiguation(tmp_path_factory.mktemp("runs") / "wordnet-1f3a9c", outside=120)
    write_report(run)
    return run


def page_of(run: RunDir) -> Page:
    return parse(run.report_html.read_text(encoding="utf-8"))


def rows_below(text: str, title: str) -> list[list[str]]:
    """The words of each row of a table of the terminal, up to the blank line after it."""
    lines = [line.strip() for line in text.splitlines()]
    body = lines[lines.index(title) + 4 :]
    return [line.split() for line in body[: body.index("")]]


def test_each_slice_is_shown_with_the_accuracy_of_the_most_popular_candidate(run: RunDir) -> None:
    rows = rows_below(printed([run]), "Slices (test)")
    assert rows[0] == ["all", "mentions", "2,000", "75.00", "%", "35.00", "%", "+40.00"]
    assert rows[3] == ["unif_NS_TL", "900", "60.00", "%", "10.00", "%", "+50.00"]
    assert rows[4] == ["unif_NS_TS", "0", "–", "–", "–"]


def test_mentions_with_a_gold_among_the_candidates_have_a_table(run: RunDir, tmp_path: Path) -> None:
    text = printed([run])
    rows = rows_below(text, "Slices (test, gold among the candidates)")
    assert rows[0] == ["all", "mentions", "1,880", "79.79", "%", "37.23", "%", "+42.55"]
    assert "the gold of 120 mentions is not a candidate" in text
    plain = printed([write_disambiguation(tmp_path / "plain")])
    assert "among the candidates" not in plain
    assert "is not a candidate" not in plain


def test_slices_are_not_in_the_table_of_scores(run: RunDir) -> None:
    rows = rows_below(printed([run]), "Scores")
    assert [row[0] for row in rows] == ["loss", "accuracy", "popularity"]


def test_before_the_final_evaluation_the_newest_accuracies_are_shown(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "under-way")
    run.path.mkdir()
    run.config.write_text("name: wordnet\ntask:\n  kind: entity_disambiguation\n")
    for step, share in ((10, 0.25), (20, 0.5)):
        line = {"step": step, "epoch": step / 10, "split": "validation", "loss": 1.0, "accuracy": 0.7}
        append_json_line(run.metrics, {**line, "accuracy/unif_NS_TL": share})
    assert rows_below(printed([run]), "Slices (so far)") == [["unif_NS_TL", "50.00", "%"]]


@pytest.mark.slow
def test_a_comparison_shows_the_slices_of_each_run(run: RunDir, tmp_path: Path) -> None:
    other = write_disambiguation(tmp_path / "wordnet-0b5e11", gain=100)
    rows = rows_below(printed([run, other]), "Slices (test accuracy)")
    assert rows[0] == ["all", "mentions", "2,000", "35.00", "%", "75.00", "%", "80.00", "%"]
    page = parse(write_comparison(compare([run, other]), tmp_path / "both.html").read_text(encoding="utf-8"))
    assert ["all mentions", "2,000", "35.00 %", "75.00 %", "80.00 %"] in [
        row for table in page.tables for row in table
    ]


def test_a_baseline_that_differs_between_runs_is_not_shown(run: RunDir, tmp_path: Path) -> None:
    other = write_disambiguation(tmp_path / "other")
    document = read_json(DisambiguationFiles(other).slices("test"))
    for row in document["slices"]:
        row["mentions"] *= 2
    write_json(DisambiguationFiles(other).slices("test"), document)
    assert rows_below(printed([run, other]), "Slices (test accuracy)")[0] == [
        "all", "mentions", "–", "–", "75.00", "%", "37.50", "%",
    ]  # fmt: skip


def test_page_shows_tables_and_plots_of_the_last_split_and_folds_the_others(written: RunDir) -> None:
    page = page_of(written)
    assert [each for each in page.headings if each.startswith("Slices")] == [
        "Slices (test)",
        "Slices (validation)",
        "Slices over the steps",
    ]
    assert "Slices of validation" in page.text
    assert ["unif_NS_TL", "900", "60.00 %", "10.00 %", "+50.00"] in page.tables[2]


def test_page_has_no_empty_tables_and_none_of_other_tasks(written: RunDir) -> None:
    page = page_of(written)
    others = ("Classes", "Confusion", "Labels", "Thresholds")
    assert not [heading for heading in page.headings if heading.startswith(others)]
    assert all(len(table) > 1 for table in page.tables)


def test_spreadsheet_and_document_have_counts_and_shares(written: RunDir) -> None:
    with open(written.report / "slices_test.csv", newline="") as stream:
        rows = {row["slice"]: row for row in csv.DictReader(stream)}
    assert list(rows) == ["final_loss", *(name for name in SLICES if name != "final_loss")]
    assert (rows["unif_NS_TL"]["correct"], float(rows["unif_NS_TL"]["accuracy"])) == ("540", 0.6)
    document = read_json(written.report / "report.json")
    assert document["slices"]["test"]["scores"]["final_loss"]["accuracy_not_nc"] == 1500 / 1880
    assert list(document["slices"]) == ["validation", "test"]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plots_show_model_and_popularity(run: RunDir, theme: Theme) -> None:
    plots = run_plots(summarize(run))
    for name, colours in (
        ("slices.png", (theme.series[0], theme.quiet)),
        ("slices_over_time.png", (theme.series[0], theme.series[1], theme.quiet)),
    ):
        image = pixels(plots[name](theme))
        for colour in colours:
            assert count_of(image, colour) > 100, (name, colour)


def test_the_metric_of_the_best_checkpoint_is_drawn(run: RunDir, finished_run: RunDir) -> None:
    assert "accuracy_unif_NS_TL.png" in run_plots(summarize(run))
    assert not any("slice" in name for name in run_plots(summarize(finished_run)))


def test_damaged_counts_are_reported(run: RunDir) -> None:
    DisambiguationFiles(run).slices("test").write_text('{"slices": [{"name": "x", "mentions": "many"}]}')
    with pytest.raises(DataError, match=r"test_slices\.json: cannot be read"):
        summarize(run)


def test_plot_of_many_slices_is_higher_than_wide(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run", kind="entity_disambiguation")
    slices = {f"accuracy/slice_{number}": number / 20 for number in range(16)}
    append_json_line(run.metrics, {"step": 400, "split": "validation", "epoch": 4, "accuracy": 0.5, **slices})
    height, width, _ = pixels(run_plots(summarize(run))["slices_over_time.png"](LIGHT)).shape
    assert height > width
