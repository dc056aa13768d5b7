"""The benchmarks that need the cluster work on it: at toy size, so their figures mean nothing here."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from tests.cluster.product.user import User
from tests.docs.readme import ROOT

#: A kill, a preemption and several imports of torch, in two tools.
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.usefixtures("on_the_login_node")]


def found(name: str, folder: Path) -> list[dict[str, Any]]:
    """The tables of one benchmark."""
    assert main([name, "--quick", "--json", str(folder / "found.json")]) == 0
    tables: list[dict[str, Any]] = json.loads((folder / "found.json").read_text())["tables"]
    return tables


def values(table: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Those of what is installed."""
    rows = [row for row in table["rows"] if not row.get("missing", "").startswith("not installed")]
    assert not [row for row in rows if "missing" in row], rows
    return {(row["work"], row["candidate"]): row["values"][0] for row in rows}


def test_parts_of_goodput_under_a_kill_add_up_to_the_wall_time(tmp_path: Path) -> None:
    share, parts = map(values, found("goodput", tmp_path))
    assert share
    assert all(0 < value < 100 for value in share.values())
    for tool in {tool for tool, _ in parts}:
        seconds = {part: value for (each, part), value in parts.items() if each == tool}
        wall = seconds.pop("wall time")
        assert math.isclose(sum(seconds.values()), wall, abs_tol=0.01), tool
    ours = {part: value for (tool, part), value in parts.items() if tool.startswith("stk run")}
    assert ours["a person"] == 0.0


def test_parts_of_the_restart_after_a_preemption_add_up(tmp_path: Path) -> None:
    whole, parts = map(values, found("resume", tmp_path))
    for (_, tool), value in whole.items():
        seconds = {part: each for (name, part), each in parts.items() if name == tool}
        assert seconds.pop("all but Slurm") == value
        assert seconds.pop("Slurm") > 0
        assert min(seconds.values()) >= 0
        assert math.isclose(sum(seconds.values()), value, abs_tol=0.01)


def test_scaling_is_measured_on_the_hosts(user: User, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    user.run(sys.executable, "-m", "benchmarks", "scaling", "--quick", "--json", found, cwd=ROOT)
    speed, curve = json.loads(found.read_text())["tables"]
    assert not any("Without a cluster" in note for note in speed["notes"])
    assert all(row["values"][0] > 0 for row in [*speed["rows"], *curve["rows"]])
    assert {row["work"] for row in curve["rows"]} == {"DocNN, 2 hosts"}
    jobs = user.run("sacct", "--noheader", "--allocations", "--parsable2", "--format=NNodes").stdout.split()
    assert jobs.count("2") >= 2, "srun asked for two hosts, by hand and with stk run"
