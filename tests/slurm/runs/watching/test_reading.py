"""A run's folder becomes a snapshot; what is missing or damaged in it is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.runs.watching.reading import RunReader
from slurm.status.rows import RunStatus
from tests.slurm.runs.watching.folders import (
    FIRST,
    NONCE,
    ROW,
    SECOND,
    SUBMITTED,
    metrics,
    write_lines,
    write_run,
)
from toolkit.files import append_json_line
from toolkit.run.run_dir import RunDir


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "tiny-1")
    write_run(run)
    return run


@pytest.fixture
def row(run: RunDir) -> RunStatus:
    return replace(ROW, run_id=run.run_id, run_dir=str(run.path))


def test_loss_main_metric_and_speed_are_curves(run: RunDir, row: RunStatus) -> None:
    snapshot = RunReader(run).read(row)
    assert [curve.name for curve in snapshot.curves] == ["train loss", "validation accuracy", "tokens/s"]
    assert snapshot.curves[0].values[:2] == (2.9, 2.8)
    assert snapshot.curves[1].values == (0.6, 0.7, 0.8, 0.9)


def test_main_metric_stays_if_the_newest_line_lacks_it(run: RunDir, row: RunStatus) -> None:
    lines = [{"step": 1, "loss": 2.0, "bleu": 0.3, "rouge": 0.4}, {"step": 2, "loss": 1.0, "rouge": 0.5}]
    write_lines(run.metrics, [{"split": "validation", **line} for line in lines])
    (curve,) = RunReader(run).read(row).curves
    assert (curve.name, curve.values) == ("validation bleu", (0.3,))


@pytest.mark.parametrize("tokens", [0.0, 7.0], ids=["not counted", "one of each sample"])
def test_speed_is_in_samples_if_samples_have_no_tokens(run: RunDir, row: RunStatus, tokens: float) -> None:
    write_lines(run.metrics, [{"step": 1, "split": "train", "tokens_per_s": tokens, "samples_per_s": 7.0}])
    (curve,) = RunReader(run).read(row).curves
    assert (curve.name, curve.values) == ("samples/s", (7.0,))


def test_spans_begin_with_the_submission(run: RunDir, row: RunStatus) -> None:
    snapshot = RunReader(run).read(row)
    assert [span.kind for span in snapshot.spans] == [
        "waiting", "starting", "training", "waiting", "starting", "training"
    ]  # fmt: skip
    assert (snapshot.spans[0].begin, snapshot.spans[-1].end) == (SUBMITTED, snapshot.now)
    assert snapshot.saves == (FIRST + 120,)


def test_spans_of_an_ended_run_end_with_its_last_metrics(run: RunDir, row: RunStatus) -> None:
    snapshot = RunReader(run).read(replace(row, state="unknown", is_live=False))
    assert snapshot.spans[-1].end == metrics()[-1]["time"]


def test_ranks_have_host_phase_and_usage(run: RunDir, row: RunStatus) -> None:
    snapshot = RunReader(run).read(row)
    found = [(rank.rank, rank.host, rank.phase) for rank in snapshot.ranks]
    assert found == [(0, "c1", "forward"), (1, "c1", "forward")]
    used = snapshot.ranks[1].usage
    assert (used.rank, used.rss_mb, used.cpu_percent, used.gpu.name) == (1, 2048.0, 150.0, "H100")
    assert snapshot.ranks[0].silent_s == pytest.approx(snapshot.now - SECOND - 60)


@pytest.mark.parametrize("state", ["finished", "failed", "requeued"])
def test_ranks_that_have_ended_do_nothing_any_more(run: RunDir, row: RunStatus, state: str) -> None:
    assert RunReader(run).read(replace(row, state=state)).ranks == ()


def test_ranks_of_an_ending_local_run_are_shown_only_while_they_hold_its_lock(
    run: RunDir, row: RunStatus
) -> None:
    ending = replace(row, job_id="local-7", doing="ending")
    assert RunReader(run).read(ending).ranks == ()
    with FileLock(run.alive):
        assert len(RunReader(run).read(ending).ranks) == 2


def test_only_the_first_64_ranks_are_read(run: RunDir, row: RunStatus) -> None:
    write_lines(run.ranks(NONCE), [{"rank": rank, "host": "c1", "device": "cpu"} for rank in range(500)])
    snapshot = RunReader(run).read(row)
    assert (len(snapshot.ranks), snapshot.rank_count) == (64, 500)


def test_log_is_read_without_control_characters(run: RunDir, row: RunStatus) -> None:
    assert RunReader(run).read(row).log == ("first", "red and loud", "drawn anew")


def test_new_metrics_and_saves_are_in_the_next_snapshot(run: RunDir, row: RunStatus) -> None:
    reader = RunReader(run)
    reader.read(row)
    append_json_line(run.metrics, {"time": SECOND + 70, "step": 42, "split": "train", "loss": 0.5})
    append_json_line(run.events, {"time": SECOND + 70, "event": "save"})
    snapshot = reader.read(row)
    assert snapshot.curves[0].values[-1] == 0.5
    assert len(snapshot.saves) == 2


def test_empty_folder_gives_an_empty_snapshot(tmp_path: Path, row: RunStatus) -> None:
    snapshot = RunReader(RunDir(tmp_path)).read(replace(row, state="pending"))
    assert (snapshot.curves, snapshot.spans, snapshot.ranks, snapshot.log) == ((), (), (), ())


_DAMAGE = ["", "{", "[]", "null", '{"time": "soon", "rank": "first", "split": 3}', "\x00\x01"]


@pytest.mark.parametrize("damage", _DAMAGE)
def test_damaged_files_are_left_out(run: RunDir, row: RunStatus, damage: str) -> None:
    files = [path for path in run.path.rglob("*") if path.is_file()]
    for path in files:
        path.write_text(f"{damage}\n")
    for state in ("running", "unknown"):
        assert RunReader(run).read(replace(row, state=state, is_live=state == "running")).ranks == ()


def test_files_that_may_not_be_read_are_left_out(
    run: RunDir, row: RunStatus, request: pytest.FixtureRequest
) -> None:
    for path in run.path.rglob("*.*"):
        if path.is_file():
            path.chmod(0)
    request.getfixturevalue("ordinary_user")
    snapshot = RunReader(run).read(row)
    assert (snapshot.curves, snapshot.spans, snapshot.ranks, snapshot.log) == ((), (), (), ())


def test_loss_that_was_not_finite_is_nan_in_the_curve(run: RunDir, row: RunStatus) -> None:
    """It is written as null."""
    lines = [{"step": step, "split": "train", "loss": loss} for step, loss in enumerate([2.0, None, 1.0])]
    write_lines(run.metrics, lines)
    assert RunReader(run).read(row).curves[0].values == pytest.approx((2.0, math.nan, 1.0), nan_ok=True)
