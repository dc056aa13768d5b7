"""Where benchmarks that kill and preempt may run."""

from __future__ import annotations

import pytest

from benchmarks.cluster.on_cluster import absent


@pytest.mark.parametrize("file", ["/etc/slurm/slurm.conf", "slurm.conf", ""])
def test_other_clusters_are_not_the_test_cluster(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setenv("SLURM_CONF", file)
    assert absent() == "needs the test cluster (scripts/cluster up)"
