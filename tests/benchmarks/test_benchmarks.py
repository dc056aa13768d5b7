"""The benchmarks work: at toy size, so their figures mean nothing here."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.figures.tables import Spread, Table
from benchmarks.measuring.rounds import Case, ChildFailed, call, in_turns
from benchmarks.registry import BENCHMARKS

#: What measures this project itself, which is always installed.
OURS = ("stk run", "ours", "prepared samples", "stk submit", "stk sweep", "stk status")


#: Measured by tests/cluster/product/studies/test_benchmarks.py; these two cannot be measured elsewhere.
ON_CLUSTER = ("goodput", "resume")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BENCHMARKS) - {*ON_CLUSTER, "scaling", "gpu"}))
def test_benchmark_gives_finite_figures_for_all_that_is_installed(name: str, tmp_path: Path) -> None:
    assert main([name, "--quick", "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["tables"]
    for table in found["tables"]:
        measured = [row for row in table["rows"] if "missing" not in row]
        assert all(len(row["values"]) == 1 and math.isfinite(row["values"][0]) for row in measured)
        assert any(ours in row["candidate"] for row in measured for ours in OURS), table["title"]
        for row in table["rows"]:
            assert row.get("missing", "not installed").startswith("not installed"), row


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="for machines without a GPU")
def test_gpu_benchmark_runs_on_the_cpu_except_for_cuda_only_rows(tmp_path: Path) -> None:
    assert main(["gpu", "--quick", "--json", str(tmp_path / "found.json")]) == 0
    tables = json.loads((tmp_path / "found.json").read_text())["tables"]
    missing = [[row["missing"] for row in table["rows"] if "missing" in row] for table in tables]
    assert missing[:4] == [[], [], ["needs a GPU"], ["needs a GPU"] * 3]
    losses, changed, _, _, speeds, _ = (table["rows"] for table in tables)
    assert all(row["values"][0] > 0 for row in speeds if row["candidate"].startswith("stk run"))
    assert [row["ratio"]["median"] for row in losses] == pytest.approx([1.0, 1.0, 1.0], rel=0.05)
    assert [row["values"] for row in changed] == [[0.0], [0.0]]


@pytest.mark.parametrize("name", ON_CLUSTER)
def test_cluster_benchmark_reports_that_it_needs_the_test_cluster(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert main([name, "--quick", "--json", str(tmp_path / "found.json")]) == 0
    for table in json.loads((tmp_path / "found.json").read_text())["tables"]:
        assert table["rows"]
        assert {row["missing"] for row in table["rows"]} == {"needs the test cluster (scripts/cluster up)"}


def test_unknown_benchmark_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lop"]) == 2
    assert "no benchmark lop; there are loop, tokens" in capsys.readouterr().err


def test_candidate_that_fails_says_why_and_is_left_out_of_later_rounds() -> None:
    said: list[str] = []

    def fail() -> dict[str, float]:
        raise ChildFailed("ValueError: no")

    failing = Case(work="work", candidate="peer", measure=fail)
    found = in_turns([failing, case("other", [1.0, 2.0])], 2, said.append)
    assert found["work", "peer"] == "failed: ValueError: no"
    assert found["work", "other"] == [{"ms": 1.0}, {"ms": 2.0}]
    assert said[2] == "ms 1"
    assert sum(line.startswith("round") for line in said) == 3


def test_candidates_take_turns_forwards_and_backwards() -> None:
    said: list[str] = []
    in_turns([case("a", [1, 1]), case("b", [1, 1])], 2, said.append)
    assert [line[-1] for line in said if line.startswith("round")] == ["a", "b", "b", "a"]


def test_ratios_are_of_values_of_the_same_round() -> None:
    found = in_turns([case("base", [1, 10, 2]), case("ours", [2, 20, 6])], 3, lambda _: None)
    row = table().filled(found, "ms").rows[1]
    assert row.ratio == Spread(low=2.0, median=2.0, high=2.5)
    assert row.difference == Spread(low=2.5, median=4.0, high=7.0)


def test_table_shows_values_without_ratios_where_the_baseline_is_missing() -> None:
    cases = [case("base", [], needs=("no_such_package",)), case("ours", [2.0])]
    lines = [*table().filled(in_turns(cases, 1, lambda _: None), "ms").markdown()]
    assert lines[-2:] == [
        "| work | base |  |  | not installed: no_such_package |",
        "| work | ours |  |  | 2.00 (2.00 to 2.00) |",
    ]


def test_child_is_a_fresh_interpreter_with_one_thread() -> None:
    assert "pytest" in sys.modules
    assert call("tests.benchmarks.children:state") == {"pytest": False, "threads": "1"}


def test_failing_child_tells_its_last_line() -> None:
    with pytest.raises(ChildFailed, match=r"^ValueError: nothing to see$"):
        call("tests.benchmarks.children:fail")


def case(candidate: str, values: list[float], needs: tuple[str, ...] = ()) -> Case:
    rest = iter(values)
    return Case(work="work", candidate=candidate, measure=lambda: {"ms": next(rest)}, needs=needs)


def table(**changes: Any) -> Table:
    settings: dict[str, Any] = {"title": "T", "goal": "g", "unit": "ms", "better": "less", "baseline": "base"}
    return Table(**{**settings, **changes})
