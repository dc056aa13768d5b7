"""Whether a step and a save fit into the time that Slurm leaves for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm.client.parse import parse_partitions
from slurm.job.save_budget import Budget, _of_time_limit, budgets, measured_lead_s, too_short
from toolkit.files import append_json_line
from toolkit.run.run_dir import RunDir

PARTITIONS = parse_partitions(
    "PartitionName=long PreemptMode=REQUEUE GraceTime=20\n"
    "PartitionName=safe PreemptMode=OFF GraceTime=0\n"
    "PartitionName=other PreemptMode=REQUEUE GraceTime=0\n"
)
CONFIG = {"PreemptType": "preempt/partition_prio", "KillWait": "30 sec"}


def names_and_seconds(found: list[Budget]) -> list[tuple[str, float]]:
    return [(budget.name, budget.seconds) for budget in found]


def test_budget_of_a_preemption_is_grace_time_plus_kill_wait() -> None:
    found = budgets(["long", "safe"], PARTITIONS, CONFIG)
    name = "a preemption in partition long (GraceTime 20 s, KillWait 30 s)"
    assert names_and_seconds(found) == [(name, 50)]


def test_half_of_a_time_limit_is_a_budget() -> None:
    """A run does not leave in the first half of its job, however long its saves take."""
    (budget,) = _of_time_limit(600.0)
    assert (budget.seconds, budget.cure) == (300.0, "raise resources.time")
    assert _of_time_limit(None) == []


@pytest.mark.parametrize("kind", ["preempt/none", "preempt/qos", ""])
def test_there_is_no_budget_without_preemption_by_partition(kind: str) -> None:
    assert budgets(["long"], PARTITIONS, {**CONFIG, "PreemptType": kind}) == []


def test_save_that_takes_most_of_a_budget_is_too_long() -> None:
    budget = Budget(name="it", seconds=10, cure="do this")
    assert too_short(6, [budget]) == []
    (line,) = too_short(6.1, [budget])
    assert line == "a step and a save take 6.1 s here, but it leaves 10 s: do this"


def test_lead_time_is_read_from_earlier_attempts(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert measured_lead_s(run) is None
    for line in ({"attempt": 1}, {"attempt": 2, "step_s": 0.5, "save_s": 2.0}, {"attempt": 3, "step_s": 9.0}):
        append_json_line(run.attempts, dict(line))
    assert measured_lead_s(run) == 2.5
