"""The benchmark of scaling on hosts of the cluster, at toy size."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.readme import ROOT

from .user import User


def test_scaling_is_measured_on_the_hosts(user: User, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    user.run(sys.executable, "-m", "benchmarks", "scaling", "--quick", "--json", found, cwd=ROOT)
    speed, curve = json.loads(found.read_text())["tables"]
    assert not any("Without a cluster" in note for note in speed["notes"])
    assert all(row["values"][0] > 0 for row in [*speed["rows"], *curve["rows"]])
    assert {row["work"] for row in curve["rows"]} == {"DocNN, 2 hosts"}
    jobs = user.run("sacct", "--noheader", "--allocations", "--parsable2", "--format=NNodes").stdout.split()
    assert jobs.count("2") >= 2, "srun asked for two hosts, by hand and with stk run"
