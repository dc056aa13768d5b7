"""The time and the resources of a run as tables, bars and plots."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.toolkit.report.drawn import printed, run_plots
from tests.toolkit.report.parsed_page import parse
from tests.toolkit.report.report_folders import START_S, write_attempts, write_config, write_usage
from toolkit.files import append_json_line
from toolkit.report.model import to_json
from toolkit.report.plotting.themes import DARK, LIGHT
from toolkit.report.rendering.writing import write_report
from toolkit.report.run.summary import summarize
from toolkit.report.time_and_resources.bars import bar, time_line
from toolkit.report.time_and_resources.times import goodput_words, hours_words, time_table
from toolkit.report.time_and_resources.usage import usage_table
from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """Waits 100 s, has four GPUs for 150 s, is put back for 50 s, repeats ten steps, has two for 150 s."""
    run = RunDir(tmp_path / "news-1f3a9c")
    write_config(run)
    write_attempts(run)
    append_json_line(run.submissions, {"time": START_S - 100, "cluster": "slurm", "job_id": "4711"})
    return run


def test_every_attempt_has_a_row_and_the_table_has_a_total(run: RunDir) -> None:
    table = time_table(summarize(run))
    assert table.head == ("attempt", "waiting", "starting", "training", "repeated", "goodput", "GPU-h")
    assert table.rows == (
        ("0", "0:01:40", "12.0 s", "0:02:09", "9.2 s", "85.9 %", "0.17"),
        ("1", "50.0 s", "10.0 s", "0:02:20", "–", "93.3 %", "0.083"),
    )
    assert table.feet == (("all", "0:02:30", "22.0 s", "0:04:29", "9.2 s", "89.6 %", "0.25"),)


def test_headline_has_goodput_and_gpu_hours(run: RunDir) -> None:
    summary = summarize(run)
    assert goodput_words(summary) == "89.6 % of 5 min 00 s allocated"
    assert hours_words(summary.attempt_usage) == "0.25 GPU-hours: 0.22 useful, 0.029 lost"


def test_run_on_cpus_is_reported_in_cpu_hours(run: RunDir) -> None:
    run.attempts.write_text(run.attempts.read_text().replace("cuda", "cpu"))
    run.job.write_text("cpus_per_task: 2\n")
    summary = summarize(run)
    assert time_table(summary).head[-1] == "CPU-h"
    assert hours_words(summary.attempt_usage).startswith("0.50 CPU-hours")


def test_each_cell_of_a_bar_shows_the_main_use_of_its_time(run: RunDir) -> None:
    """Cells of ten seconds: 100 s of waiting, 12 of starting, 129 of training, 9 of repeated steps."""
    (first, following) = summarize(run).attempt_usage
    begin, end = START_S - 100, START_S + 350
    assert bar(first, begin, end, 45).plain.rstrip() == "·" * 10 + "▒" + "█" * 13 + "╳"
    assert bar(following, begin, end, 45).plain == " " * 25 + "·" * 5 + "▒" + "█" * 14


def test_time_line_shows_the_last_of_many_attempts(run: RunDir) -> None:
    for number in range(2, 60):
        line = {"attempt": number, "time_start": START_S + 400 * number, "job_id": "4711", "restart": number}
        append_json_line(run.attempts, {**line, "time_end": START_S + 400 * number + 100})
    summary = summarize(run)
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(time_line(summary.attempt_usage, 80))
    assert "the last 15 of 60 attempts" in console.export_text()
    assert len(run_plots(summary)["timeline.png"](LIGHT)) > 1000


def test_attempt_of_zero_seconds_is_drawn(run: RunDir) -> None:
    run.attempts.write_text('{"attempt": 1, "time_start": 5.0, "time_end": 5.0}\n')
    run.submissions.unlink()
    summary = summarize(run)
    assert run_plots(summary)["timeline.png"](DARK)
    assert "Time line" not in printed([run], 80)


def test_usage_table_has_a_row_for_each_rank_of_the_last_attempt(run: RunDir) -> None:
    append_json_line(run.attempts, {"attempt": 0, "nonce": "a"})
    append_json_line(run.attempts, {"attempt": 1, "nonce": "b"})
    write_usage(run, "a", [{}])
    write_usage(run, "b", [{}, {"gpu": None, "rss_peak_mb": 512.0}], begin=START_S + 500)
    summary = summarize(run)
    assert [rank.nonce for rank in summary.usage] == ["a", "b", "b"]
    assert usage_table(summary).rows == (
        ("0", "node01", "2.0 GB", "0.90", "4", "A100", "75.0 %", "9.3 GB", "40.0 GB"),
        ("1", "node01", "512 MB", "0.90", "4", "–", "–", "–", "–"),
    )
    assert len(run_plots(summary)["usage.png"](LIGHT)) > 1000
    assert "history" not in to_json(summary)["usage"][0]


def test_terminal_shows_the_first_16_of_many_ranks(run: RunDir) -> None:
    append_json_line(run.attempts, {"attempt": 1, "nonce": "b"})
    write_usage(run, "b", [{}] * 40)
    text = printed([run], 80)
    assert "the first 16 of 40 rows; the page has them all" in text
    assert [line.split()[0] for line in text.splitlines() if "node01  " in line][-1] == "15"


def test_page_of_a_run_without_usage_says_so(run: RunDir) -> None:
    assert "There is no advice on them." in parse(write_report(run).read_text()).text


@pytest.mark.slow
def test_report_at_the_end_of_a_run_omits_the_usage_plot(run: RunDir) -> None:
    append_json_line(run.attempts, {"attempt": 0, "nonce": "a"})
    write_usage(run, "a", [{"host": "<b>\x1b"}])
    page = parse(write_report(run, thorough=False).read_text())
    assert not (run.report / "usage.png").exists()
    assert page.table_with("rank", "host")[0][:2] == ["0", "<b>␛"]
    assert "usage.png" in run_plots(summarize(run))


def test_report_is_written_as_markdown_and_csv(run: RunDir) -> None:
    write_report(run)
    text = (run.report / "report.md").read_text()
    assert "| all | 0:02:30 | 22.0 s | 0:04:29 | 9.2 s | 89.6 % | 0.25 |" in text
    assert "](timeline.png)" in text
    head, *rows = (run.report / "starts.csv").read_text().splitlines()
    assert head.startswith("attempt,begin,end,training,repeated,saving,starting,finishing,waiting,away,")
    assert len(rows) == 2
