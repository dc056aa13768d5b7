"""The curve of scaling, and what is said where there is no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cluster.on_cluster import absent
from benchmarks.cluster.scaling import measure, points_of, speed_ups
from benchmarks.measuring.rounds import Size


def test_rows_say_what_is_needed_without_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    speed, curve = measure(Size(), tmp_path, pytest.fail)
    assert {row.missing for row in [*speed.rows, *curve.rows]} == {absent()}
    assert len(speed.rows) == 18
    assert len(curve.rows) == 12
    assert [*tmp_path.iterdir()] == []


def test_speed_up_is_relative_to_one_host_in_the_same_round(tmp_path: Path) -> None:
    points = [*points_of(Size(quick=True), tmp_path)]
    found = speed_ups(
        points,
        {
            ("DocNN, 1 host", "ours"): [{"samples_per_s": 10.0}, {"samples_per_s": 20.0}],
            ("DocNN, 2 hosts", "ours"): [{"samples_per_s": 15.0}, {"samples_per_s": 10.0}],
            ("DocNN, 1 host", "peer"): "failed: no",
            ("DocNN, 2 hosts", "peer"): [{"samples_per_s": 15.0}, {"samples_per_s": 10.0}],
        },
    )
    assert found == {
        ("DocNN, 2 hosts", "ours"): [{"speed_up": 1.5}, {"speed_up": 0.5}],
        ("DocNN, 2 hosts", "peer"): "failed: no",
    }


def test_samples_per_process_do_not_depend_on_the_number_of_hosts(tmp_path: Path) -> None:
    works = [point.work for point in points_of(Size(), tmp_path)]
    assert [work.processes for work in works] == [1, 2, 4, 1, 2, 4]
    assert {work.batch / work.processes for work in works} == {32}
