from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.toolkit.report.report_folders import (
    write_attempts,
    write_classes,
    write_config,
    write_failure,
    write_finished,
    write_metrics,
)
from toolkit.files import append_json_line
from toolkit.report import render, summarize
from toolkit.report.class_tables import confusions
from toolkit.rundir import RunDir

HOSTILE = [
    "<script>alert(1)</script>",
    "[bold red]rich[/]",
    "esc\x1b[31mape",
    "日本語 🎬",
    ":smile: \u202eflip",
]


def printed(runs: Sequence[RunDir], width: int = 80, colour: bool = False) -> str:
    """Return what a terminal of this width gets, with its colours or without."""
    console = a_terminal(width, colour)
    render([summarize(run) for run in runs], console)
    return console.export_text(styles=colour)


def a_terminal(width: int, colour: bool = False) -> Console:
    return Console(
        record=True,
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=not colour,
        legacy_windows=False,
    )


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(finished_run: RunDir, tmp_path: Path, width: int) -> None:
    hostile = write_finished(tmp_path / "a-run-with-a-rather-long-name-0a0a0a0a", HOSTILE)
    for runs in ([finished_run], [hostile], [finished_run, hostile]):
        lines = printed(runs, width).splitlines()
        assert lines
        assert max(map(cell_len, lines)) <= width


def test_the_headline_says_what_how_far_where_and_how_good(finished_run: RunDir) -> None:
    text = printed([finished_run])
    assert "sst2-1f3a9c" in text
    for fact in (
        "state finished",
        "steps 300 (epoch 3 of 3)",
        "trained for 5 min 00 s",
        "where 2 ranks on cuda, node07, earlier node01, node02",
        "best validation accuracy 80.00 % at step 200",
        "speed 3,200 samples/s, 61,000 tokens/s",
        "starts 2, the last one ended: finished",
    ):
        assert fact in " ".join(text.replace("│", " ").split())


def test_each_metric_has_a_row_and_each_split_a_column(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]))
    assert ["metric", "train", "validation", "test"] in rows
    assert ["loss", "0.1562", "0.4000", "0.4312"] in rows
    assert ["macro", "F1", "–", "78.50", "%", "78.50", "%"] in rows


def test_each_epoch_has_a_row(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]))
    assert ["2", "0.3258", "0.4000", "67.42", "%", "80.00", "%"] in rows


def test_an_epoch_shows_the_accuracies_that_the_task_has(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "corrections")
    write_config(run)
    training = {"loss": 2.0, "token_accuracy": 0.5}
    append_json_line(run.metrics, {"step": 10, "epoch": 1.0, "split": "train", **training})
    validation = {"loss": 1.0, "token_accuracy": 0.75, "sequence_accuracy": 0.125}
    append_json_line(run.metrics, {"step": 10, "epoch": 1.0, "split": "validation", **validation})
    rows = rows_of(printed([run], width=160).partition("Epochs")[2])
    losses = ["training", "loss", "validation", "loss"]
    accuracies = [*("training", "token", "accuracy"), *("validation", "token", "accuracy")]
    assert ["epoch", *losses, *accuracies, "validation", "sequence", "accuracy"] in rows
    assert ["1", "2.0000", "1.0000", "50.00", "%", "75.00", "%", "12.50", "%"] in rows


def test_scores_of_each_class_stand_above_their_macro_average(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]))
    negative = ["negative", "83.33", "%", "85.11", "%", "84.21", "%", "47"]
    macro = ["macro", "average", "84.38", "%", "84.39", "%", "84.37", "%", "96"]
    assert negative in rows
    assert macro in rows
    assert rows.index(negative) < rows.index(macro)


def test_the_confusion_matrix_has_true_classes_in_rows(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]))
    assert ["true", "╲", "predicted", "negative", "positive"] in rows
    assert ["negative", "40", "7"] in rows
    assert ["positive", "8", "41"] in rows


def test_the_normalised_matrix_has_shares_of_the_true_class(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]).partition("Confusion, % (test)")[2])
    assert ["negative", "85.1", "14.9"] in rows
    assert ["positive", "16.3", "83.7"] in rows


def test_the_confusion_matrix_is_shaded_where_there_is_colour(finished_run: RunDir) -> None:
    assert ";48;2;" in printed([finished_run], colour=True)
    assert "\x1b[" not in printed([finished_run], colour=False)


def test_a_matrix_of_eleven_classes_with_long_names_fits_into_80_columns(new_run: RunDir) -> None:
    write_classes(new_run, [f"a rather long class {number:02d}" for number in range(11)])
    narrow = printed([new_run], 80)
    matrix = rows_of(narrow.partition("Confusion (test)")[2])
    assert ["true", "╲", *map(str, range(1, 12))] in matrix
    assert any(row[-12:-9] == ["1", "40", "7"] for row in matrix)
    shares = rows_of(narrow.partition("Confusion, % (test)")[2])
    assert any(row[-12:-9] == ["1", "85.1", "14.9"] for row in shares)
    assert "true ╲ predicted" in printed([new_run], 250)


def test_a_matrix_too_wide_for_the_terminal_gives_way_to_its_worst_cells(new_run: RunDir) -> None:
    write_classes(new_run, [f"class_{number:02d}" for number in range(30)])
    narrow, wide = printed([new_run], 80), printed([new_run], 400)
    assert ["class_29", "class_00", "36"] in rows_of(narrow)
    assert "true ╲" not in narrow
    assert "true ╲ predicted" in wide
    assert "Most frequent confusions" not in wide


def test_of_very_many_classes_the_worst_are_shown(new_run: RunDir) -> None:
    write_classes(new_run, [f"class_{number:03d}" for number in range(100)])
    text = printed([new_run], 80)
    assert "the 40 lowest F1 of 100 classes" in text
    assert any(
        row[:2] == ["macro", "average"] and row[-1] == f"{100 * 47 + 99 * 100:,}" for row in rows_of(text)
    )
    assert len([row for row in rows_of(text) if row and row[0].startswith("class_") and "%" in row]) == 40


def test_labels_are_text_and_never_markup_or_commands(tmp_path: Path) -> None:
    run = write_finished(tmp_path / "run-0", HOSTILE)
    text, matrix = printed([run], 80), printed([run], 120).partition("Confusion (test)")[2]
    scores = "\n".join(line for line in text.splitlines() if line.count("%") == 3)
    console = a_terminal(80)
    console.print(confusions(summarize(run).classes["test"]))
    worst = console.export_text()
    for label in (
        "<script>alert(1)</script>",
        "[bold red]rich[/]",
        "esc␛[31mape",
        "日本語 🎬",
        ":smile: �flip",
    ):
        assert label in scores
        shortened = label if len(label) <= 24 else label[:23]
        assert worst.count(shortened) == 2
        assert shortened in matrix
    assert "\x1b" not in text


def test_a_failed_run_shows_error_place_and_advice(new_run: RunDir) -> None:
    write_attempts(new_run, finished=False)
    write_failure(new_run, message="bad [bold]thing[/] at \x1b]0;title\x07")
    text = printed([new_run])
    assert "OutOfMemoryError: bad [bold]thing[/] at ␛]0;title␇" in text
    assert "rank 3 on node07 in phase backward at step 151" in text
    assert "Raise train.accumulation." in text
    assert "loss.backward()" in text


def test_a_run_that_has_just_begun_has_a_headline_only(new_run: RunDir) -> None:
    text = printed([new_run])
    assert "pending" in text
    assert "Scores" not in text


def test_several_runs_stand_in_one_table_with_what_differs(tmp_path: Path, new_run: RunDir) -> None:
    first = write_finished(tmp_path / "sst2-aaa", lr=0.001)
    second = write_finished(tmp_path / "sst2-bbb", lr=0.01)
    write_metrics(new_run)
    text = printed([first, second, new_run], 120)
    rows = rows_of(text)
    scores = ["80.00", "%", "@", "200", "0.4312", "79.12", "%", "78.50", "%", "5", "min", "00", "s"]
    assert ["sst2-aaa", "finished", "300", *scores] in rows
    assert ["sst2-bbb", "finished", "300", *scores] in rows
    assert ["sst2-0b5e11", "pending", "300", "80.00", "%", "@", "200", "–", "–", "–", "–"] in rows
    assert ["optimizer.lr", "0.001", "0.01", "0.001"] in rows
    assert "best accuracy" in text


def test_no_runs_at_all_are_an_empty_table() -> None:
    assert "run" in printed([])
