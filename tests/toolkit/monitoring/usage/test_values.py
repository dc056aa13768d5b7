"""Usage files of ranks are read back; damaged files are left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.files import write_json
from toolkit.monitoring.usage.values import GpuUsage, Moment, RankUsage, read_usage
from toolkit.run.run_dir import RunDir

GPU = GpuUsage(
    name="NVIDIA H200",
    uuid="GPU-1",
    utilization=None,
    utilization_mean=None,
    memory_mb=1024.0,
    memory_peak_mb=2048.0,
    memory_total_mb=143771.0,
)
USAGE = RankUsage(
    time=1000.5,
    nonce="7.0.0",
    rank=0,
    host="gpu01",
    device="cuda:0",
    samples=3,
    seconds=12.5,
    rss_mb=512.5,
    rss_peak_mb=600.0,
    cpu_percent=180.0,
    cpu_percent_mean=150.5,
    cpus=4,
    memory_limit_mb=2048.0,
    gpu=GPU,
    history=(
        Moment(time=990.0, rss_mb=500.0, cpu_percent=170.0, gpu_utilization=90.0, gpu_memory_mb=900.0),
        Moment(time=1000.0, rss_mb=512.5, cpu_percent=180.0),
    ),
)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "ranks").mkdir()
    return RunDir(tmp_path)


def store(run: RunDir, usage: RankUsage) -> None:
    write_json(run.usage(usage.nonce, usage.rank), usage.to_json())


def test_stored_usage_is_read_back_equal(run: RunDir) -> None:
    store(run, USAGE)
    assert read_usage(run, "7.0.0") == [USAGE]


def test_a_history_is_stored_as_rows_of_numbers(run: RunDir) -> None:
    store(run, USAGE)
    document = json.loads(run.usage("7.0.0", 0).read_text())
    assert document["history"] == [[990.0, 500.0, 170.0, 90.0, 900.0], [1000.0, 512.5, 180.0, None, None]]


def test_usage_is_sorted_by_rank_and_limited_to_its_attempt(run: RunDir) -> None:
    for nonce, rank in (("7.0.0", 10), ("7.0.0", 2), ("7.0.1", 0)):
        store(run, replace(USAGE, nonce=nonce, rank=rank, gpu=None))
    assert [usage.rank for usage in read_usage(run, "7.0.0")] == [2, 10]


def test_the_name_of_an_attempt_is_not_a_glob_pattern(run: RunDir) -> None:
    store(run, USAGE)
    assert read_usage(run, "*") == []


def test_a_run_without_usage_files_has_no_usage(tmp_path: Path) -> None:
    assert read_usage(RunDir(tmp_path / "nowhere"), "7.0.0") == []


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '"text"', "\x00\xff", '{"rank": 0}'])
def test_a_damaged_file_is_left_out(run: RunDir, text: str) -> None:
    store(run, USAGE)
    run.usage("7.0.0", 1).write_text(text)
    assert [usage.rank for usage in read_usage(run, "7.0.0")] == [0]


@pytest.mark.parametrize(
    "changes",
    [
        {"rss_mb": "much"},
        {"rss_mb": None},
        {"cpu_percent": float("nan")},
        {"rank": float("inf")},
        {"gpu": "a fast one"},
        {"history": [[1.0, 2.0]]},
        {"history": [3.0]},
        {"history": None},
    ],
)
def test_a_file_with_an_invalid_value_is_left_out(run: RunDir, changes: dict[str, object]) -> None:
    run.usage("7.0.0", 0).write_text(json.dumps({**USAGE.to_json(), **changes}))
    assert read_usage(run, "7.0.0") == []
