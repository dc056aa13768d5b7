from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.toolkit.report.drawn import printed
from tests.toolkit.report.report_folders import write_attempts, write_failure, write_finished
from toolkit.report.run.summary import summarize
from toolkit.report.run.text import headline
from toolkit.run.run_dir import RunDir

HOSTILE = [
    "<script>alert(1)</script>",
    "[bold red]rich[/]",
    "esc\x1b[31mape",
    "日本語 🎬",
    ":smile: \u202eflip",
]


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(finished_run: RunDir, tmp_path: Path, width: int) -> None:
    hostile = write_finished(tmp_path / "a-run-with-a-rather-long-name-0a0a0a0a", HOSTILE)
    for runs in ([finished_run], [hostile], [finished_run, hostile]):
        text = printed(runs, width)
        assert ("Time line" in text) == (len(runs) == 1)
        assert max(map(cell_len, text.splitlines())) <= width


def test_the_headline_has_state_steps_hosts_best_and_speed(finished_run: RunDir) -> None:
    text = printed([finished_run])
    assert "sst2-1f3a9c" in text
    for fact in (
        "state finished",
        "steps 300 (epoch 3 of 3)",
        "ran for 5 min 00 s",
        "where 2 ranks on cuda, node07, earlier node01, node02",
        "best validation accuracy 80.00 % at step 200",
        "speed 3,200 samples/s, 61,000 tokens/s",
        "attempts 2, the last one ended: finished",
    ):
        assert fact in " ".join(text.replace("│", " ").split())


def test_samples_without_lengths_have_one_speed(finished_run: RunDir) -> None:
    """Each counts as one token."""
    summary = summarize(finished_run)
    shown = dict(headline(replace(summary, tokens_per_s=summary.samples_per_s)))
    assert shown["speed"] == "3,200 samples/s"


def test_a_large_epoch_is_a_whole_number(finished_run: RunDir) -> None:
    summary = replace(summarize(finished_run), step=61_725, epoch=12_345.4, epochs=20_000)
    assert dict(headline(summary))["steps"] == "61,725 (epoch 12,345 of 20,000)"


def test_each_epoch_has_a_row(finished_run: RunDir) -> None:
    rows = rows_of(printed([finished_run]))
    assert ["2", "0.3258", "0.4000", "67.42", "%", "80.00", "%", "80.50", "%"] in rows


def test_a_failed_run_shows_error_place_and_advice(new_run: RunDir) -> None:
    write_attempts(new_run, finished=False)
    write_failure(new_run, message="bad [bold]thing[/] at \x1b]0;title\x07")
    text = printed([new_run])
    assert "OutOfMemoryError: bad [bold]thing[/] at ␛]0;title␇" in text
    assert "rank 3 on node07 in phase backward at step 151" in text
    assert "Raise train.accumulation." in text
    assert "loss.backward()" in text
