"""The table for people, on terminals of any width."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from slurm.commands.runs.watch import _table
from slurm.status.rows import RunStatus
from slurm.status.run_state import CANNOT_ASK
from slurm.status.table import lay_out
from tests.slurm.status.folders import new_run

TRAINING = RunStatus(
    run_id="bert-large-topics-0123abcd", run_dir="/runs", job_id="4711_3", state="running", step=400,
    total_steps=1000, epoch=4.0, restarts=2, doing="training", percent=40.0, eta_s=3900.0, loss=0.4321,
    main_metric="accuracy", main_value=0.8765, tokens_per_s=104321.7, hosts=["node01", "node02", "node03"],
    gpu_hours=12.34, is_live=True,
)  # fmt: skip
FAILED = RunStatus(
    run_id="cnn-9876fedc", run_dir="/runs", job_id="4712", state="failed", step=3, total_steps=10, epoch=0.3,
    doing="failed: out of memory", reason="rank 3 on c2: CUDA out of memory. Tried 2 GiB.",
)  # fmt: skip
WAITING = RunStatus(
    run_id="graph-5555aaaa", run_dir="/runs", job_id="4713", state="pending", is_live=True,
    doing="waiting for GPUs (about Mon 15:10, Resources)", reason="Resources",
)  # fmt: skip


def lines(rows: list[RunStatus], width: int | None) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lay_out(rows, width)]


def test_wide_table_shows_every_column() -> None:
    titles, row, *_ = lines([TRAINING], None)
    assert titles.split() == [
        *("run", "state", "step", "%", "ETA", "epoch", "loss", "accuracy", "tokens/s", "restarts", "GPU-h"),
        *("hosts", "job"),
    ]
    assert re.split(r"\s\s+", row) == [
        *("bert-large-topics-0123abcd", "training", "400/1000", "40", "1 h 05 min", "4.00", "0.4321"),
        *("0.8765", "104,322", "2", "12.3", "node01 +2", "4711_3"),
    ]


def test_a_run_whose_samples_have_no_tokens_shows_samples_per_second() -> None:
    images = replace(TRAINING, metrics={"train_samples_per_s": 900.0}, tokens_per_s=900.0)
    assert "tokens/s" not in lines([images], None)[0]
    titles, *rows = lines([images, TRAINING], None)
    samples, tokens = (
        slice(titles.index(name) - 1, titles.index(name) + len(name)) for name in ("samples/s", "tokens/s")
    )
    assert [(row[samples].strip(), row[tokens].strip()) for row in rows[:2]] == [("900", ""), ("", "104,322")]


def test_table_of_80_columns_keeps_state_percent_and_eta() -> None:
    shown = lines([TRAINING, FAILED, WAITING], 80)
    assert shown[0].split() == ["run", "state", "%", "ETA"]
    assert "training" in shown[1]
    assert "1 h 05 min" in shown[1]
    assert max(map(len, shown)) <= 80


def test_long_run_id_is_shortened_in_its_middle() -> None:
    """The hash at the end tells it from its siblings."""
    shown = lines([TRAINING], 30)[1]
    assert re.match(r"bert\S*…\S*abcd", shown)


def test_a_reason_stands_below_its_row_unless_the_state_says_it() -> None:
    shown = lines([FAILED, WAITING], None)
    assert shown[2] == "  rank 3 on c2: CUDA out of memory. Tried 2 GiB."
    assert shown[3].startswith("graph-5555aaaa")
    assert shown[4] == ""


def test_percentage_of_a_run_before_its_end_is_below_100() -> None:
    assert re.split(r"\s\s+", lines([replace(TRAINING, percent=99.9)], None)[1])[3] == "99"


def test_empty_column_is_left_out() -> None:
    assert "GPU-h" in lines([TRAINING], None)[0]
    assert not {"GPU-h", "ETA", "restarts"} & set(lines([FAILED], None)[0].split())


def test_different_main_metrics_are_shown_with_their_names() -> None:
    shown = lines([TRAINING, replace(TRAINING, main_metric="f1")], None)
    assert "validation" in shown[0]
    assert "f1 0.8765" in shown[2]


def test_metric_named_like_another_column_is_prefixed_with_its_split() -> None:
    titles = lines([replace(TRAINING, main_metric="loss")], None)[0]
    assert "  loss  validation loss  " in titles


def test_footer_counts_states_and_gpu_hours() -> None:
    assert lines([TRAINING, FAILED, FAILED], None)[-1] == "3 runs: 2 failed, 1 running; 12.3 GPU-hours"
    assert "runs:" not in "\n".join(lines([TRAINING], None))


def test_missing_answer_of_slurm_is_shown_once() -> None:
    reason = f"{CANNOT_ASK}: no controller answers"
    silent = [replace(FAILED, run_id=name, state="unknown", doing="unknown", reason=reason) for name in "ab"]
    assert "\n".join(lines(silent, None)).count("no controller answers") == 1


@example([replace(FAILED, reason="0" * 31 + "⺀⺀⺀⼀")], 40)
@example([replace(FAILED, run_id="a\u200d", doing="\u200d宽" * 20, reason="宽\u200d" * 40)], 40)
@example([replace(FAILED, doing="#\ufe0f" * 20, reason="©\ufe0f 宽" * 20)], 40)
@example([replace(FAILED, reason=f"{CANNOT_ASK}: \x1b[2J宽\u200d\n" * 9)], 40)
@given(
    st.lists(
        st.builds(
            RunStatus,
            run_id=st.text(min_size=1, max_size=50),
            run_dir=st.just("/"),
            job_id=st.none() | st.text(max_size=12),
            state=st.sampled_from(["running", "failed", "unknown"]),
            step=st.integers(0, 10**9),
            total_steps=st.none() | st.integers(0, 10**9),
            epoch=st.none() | st.floats(0, 1e6),
            restarts=st.integers(0, 99),
            reason=st.text(max_size=200),
            doing=st.text(max_size=60),
            loss=st.none() | st.floats(allow_nan=False, allow_infinity=False),
            main_metric=st.none() | st.text(max_size=20),
            main_value=st.none() | st.floats(-1, 1),
            hosts=st.lists(st.text(max_size=20), max_size=3),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(40, 200),
)
def test_no_line_is_wider_than_the_terminal_or_has_escape_codes(rows: list[RunStatus], width: int) -> None:
    for line in lay_out(rows, width):
        text = "".join(piece for piece, _ in line).rstrip(" ")
        assert cell_len(text) <= width
        assert "\x1b" not in text
        assert "\n" not in text


def test_watch_draws_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr("rich._console", Console(file=written, width=100))
    with _table() as show:
        show([TRAINING, FAILED])
    drawn = written.getvalue().splitlines()
    assert [line.rstrip() for line in drawn] == lines([TRAINING, FAILED], 100)


# -- the command in a terminal, and elsewhere ------------------------------------------------------


@pytest.mark.parametrize("colours", ["NO_COLOR", "FORCE_COLOR"])
def test_a_file_gets_lines_of_full_width(colours: str, tmp_path: Path) -> None:
    name = "a-name-that-is-longer-than-any-terminal-" * 3
    new_run(tmp_path, name)
    others = {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}
    own = {key: value for key, value in os.environ.items() if key not in others}
    command = [sys.executable, "-m", "slurm", "status"]
    env = {**own, "STK_EXPERIMENT_DIR": str(tmp_path), "TERM": "xterm", colours: "1"}
    written = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert ("\x1b[" in written) is (colours == "FORCE_COLOR")
    assert name in written
