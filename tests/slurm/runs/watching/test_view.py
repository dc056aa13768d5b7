"""A snapshot is drawn to fit any terminal; nothing foreign is in control of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from slurm.runs.watching.reading import Curve, Rank, RunReader, Snapshot
from slurm.runs.watching.view import view
from tests.slurm.runs.watching.folders import ROW, SECOND, write_lines, write_run
from toolkit.run.attempts.records import AttemptRecord
from toolkit.run.run_dir import RunDir


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """A run in the middle, a minute after its second start."""
    run = RunDir(tmp_path_factory.mktemp("runs") / "tiny-1")
    write_run(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("slurm.runs.watching.reading.time.time", lambda: SECOND + 60)
        yield RunReader(run).read(ROW)


def drawn(snapshot: Snapshot, width: int = 100, height: int = 40, message: str = "") -> list[str]:
    """The lines on the terminal."""
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, color_system=None, force_terminal=False)
    console.print(view(snapshot, width, height, message))
    return out.getvalue().removesuffix("\n").split("\n")


def line_with(lines: list[str], word: str) -> str:
    return next(line for line in lines if word in line)


def test_head_shows_state_job_hosts_and_progress(snapshot: Snapshot) -> None:
    lines = drawn(snapshot)
    assert lines[0].split("   ")[:4] == ["tiny-1", "training", "job 101", "on c1"]
    assert lines[1].startswith("step 40 of 100  ━")
    assert lines[1].endswith("40.0 %  epoch 2.00  about 2 min 00 s left")


def test_curves_have_their_first_and_last_value(snapshot: Snapshot) -> None:
    assert "train loss            2.9 → 1 " in line_with(drawn(snapshot), "train loss")
    assert "▁" in line_with(drawn(snapshot), "validation accuracy")


def test_curve_of_a_metric_that_became_nan_ends_with_nan(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    lines = [{"split": "train", "step": step, "loss": loss} for step, loss in enumerate((2.5, 1.0, None))]
    write_lines(run.metrics, lines)
    shown = line_with(drawn(RunReader(run).read(ROW)), "train loss")
    assert ("2.5 → nan" in shown, "█" in shown) == (True, True)


def test_attempts_are_drawn_on_a_timeline(snapshot: Snapshot) -> None:
    lines = drawn(snapshot)
    bar = line_with(lines, "◆")
    assert len(bar) == 100
    assert set(bar) == set("·▒█◆")
    legend = line_with(lines, "waiting")
    assert "· waiting 2 min 40 s   ▒ starting 30.0 s   █ training 2 min 50 s   ◆ 1 saved" in legend
    assert "from step 0 to 20" in line_with(lines, "preempted")
    assert line_with(lines, "attempt 2").rstrip().endswith("running")


def test_ranks_have_their_memory_and_load(snapshot: Snapshot) -> None:
    (title, first) = (line_with(drawn(snapshot), word) for word in ("rank  host", "0     c1"))
    assert title.split() == ["rank", "host", "doing", "memory", "CPU", "GPU", "GPU", "memory"]
    assert "forward  2.0 GB of 8.0 GB  1.5 of 4 cores" in first
    assert "93 %" in first
    assert "10.0 GB of 80.0 GB" in first


def test_ranks_on_the_cpu_have_no_gpu_columns(snapshot: Snapshot) -> None:
    ranks = tuple(replace(rank, device="cpu") for rank in snapshot.ranks)
    assert "GPU" not in "".join(drawn(replace(snapshot, ranks=ranks)))


def test_silent_rank_is_marked(snapshot: Snapshot) -> None:
    silent = replace(snapshot.ranks[1], silent_s=240.0)
    lines = drawn(replace(snapshot, ranks=(snapshot.ranks[0], silent)))
    assert "silent for 4 min 00 s" in line_with(lines, "1     c1")


def test_ranks_that_do_not_fit_are_counted(snapshot: Snapshot) -> None:
    ranks = tuple(replace(snapshot.ranks[0], rank=rank) for rank in range(64))
    lines = drawn(replace(snapshot, ranks=ranks, rank_count=200), height=40)
    shown = sum(line.split()[1:2] == ["c1"] for line in lines)
    assert f"and {200 - shown} more" in [line.strip() for line in lines]
    assert line_with(lines, "drawn anew")


def test_keys_are_on_the_last_line_and_a_question_above_them(snapshot: Snapshot) -> None:
    lines = drawn(snapshot, message="cancel tiny-1? y / n")
    assert lines[-2].strip() == "cancel tiny-1? y / n"
    assert lines[-1].split("   ")[0].strip() == "c cancel"


def test_run_that_has_not_started_shows_only_its_head(snapshot: Snapshot) -> None:
    row = replace(ROW, state="pending", step=0, total_steps=None, epoch=None, reason="Resources")
    lines = drawn(Snapshot(now=SECOND, row=row), height=12)
    assert [line.strip() for line in lines[1:4]] == ["Resources", "step 0", ""]


def test_markup_and_control_characters_are_shown_as_text(snapshot: Snapshot) -> None:
    row = replace(ROW, run_id="[red]a\x1b[2J", reason="[/] \x07\x9b5A")
    lines = drawn(replace(snapshot, row=row), message="refused:\n\x1b[1m no")
    assert lines[0].startswith("[red]a␛[2J")
    assert lines[-2].strip() == "refused:␊␛[1m no"
    assert lines[1].strip() == "[/] ␇\ufffd5A"


@settings(max_examples=60)
@given(st.integers(1, 200), st.integers(2, 80), st.text(max_size=40), st.integers(0, 80))
def test_every_line_fits_into_any_terminal(width: int, height: int, text: str, ranks: int) -> None:
    start = AttemptRecord(attempt=1, time_start=5.0, first_step=0, why=text, hosts=(text,) * 5)
    clean = " ".join(text.split())
    snapshot = Snapshot(
        now=1_000.0,
        row=replace(ROW, run_id=text, reason=text, total_steps=0),
        curves=(Curve(name=clean, values=(1e-9, 3e12)),),
        attempts=(start, replace(start, attempt=2)),
        attempt_count=2,
        ranks=tuple(Rank(rank=rank, host=clean, device="cpu") for rank in range(ranks)),
        rank_count=ranks,
        log=(clean,) * 3,
    )
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    lines = console.render_lines(view(snapshot, width, height), pad=False)
    assert len(lines) == height
    assert all(sum(segment.cell_length for segment in line) <= width for line in lines)
