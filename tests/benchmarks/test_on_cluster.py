"""Where benchmarks that kill and preempt may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cluster.on_cluster import absent, by_part


def test_another_cluster_is_not_the_test_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "slurm.conf"
    file.touch()
    monkeypatch.setenv("SLURM_CONF", str(file))
    assert absent() == "needs the test cluster (scripts/cluster up)"


def test_parts_of_a_sum_are_rows_below_it_and_a_tool_without_figures_has_one_row() -> None:
    found = {("kill", "a"): [{"wall": 3.0, "saves": 1.0, "kills": 2.0}], ("kill", "b"): "not installed: b"}
    assert by_part(found, "wall time", "wall", ["saves"]) == {
        ("a", "wall time"): [{"s": 3.0}],
        ("a", "saves"): [{"s": 1.0}],
        ("b", "wall time"): "not installed: b",
    }
