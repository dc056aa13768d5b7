"""stk drill: what it compares, how it reads a cluster, and what it says; test_installed.py runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm.client.parse import parse_partitions
from slurm.drill.cluster import Pair, choose_pair
from slurm.drill.local import LocalDrill
from slurm.drill.rows import Report, Row, digests, is_same
from slurm.drill.task import STRIDE, drill_experiment
from tests.slurm.support.user import User
from toolkit.errors import UserError
from toolkit.files import write_json
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.slow

GOOD = Row(what="preempted", processes="2 → 2", lost_steps=0, same_bytes=True)


# ---- comparing


def checkpoint(run: RunDir, step: int, text: str) -> None:
    run.checkpoint(step).mkdir(parents=True)
    (run.checkpoint(step) / "model.safetensors").write_text(text)
    (run.checkpoint(step) / "MANIFEST.json").write_text(f"made by {run.run_id}")


def test_single_different_byte_is_detected(tmp_path: Path) -> None:
    run, other = RunDir(tmp_path / "run"), RunDir(tmp_path / "other")
    for step, text in ((4, "a"), (8, "b"), (12, "c")):
        checkpoint(run, step, text)
        checkpoint(other, step, text if step < 12 else "x")
    undisturbed = digests(other)
    assert is_same(run, {step: undisturbed[step] for step in (4, 8)}, after=0) is True
    assert is_same(run, undisturbed, after=0) is False
    assert is_same(run, undisturbed, after=12) is None
    (run.checkpoint(8) / "model.safetensors").unlink()
    assert is_same(run, {8: undisturbed[8]}, after=4) is False


def test_checkpoint_that_awaits_its_evaluation_is_not_compared_before_it(tmp_path: Path) -> None:
    run, other = RunDir(tmp_path / "run"), RunDir(tmp_path / "other")
    for step in (4, 8, 12):
        for each in (run, other):
            checkpoint(each, step, "a")
            awaits = each is run and step == 8
            write_json(each.checkpoint(step) / "progress.json", {"progress": {"awaits_evaluation": awaits}})
    undisturbed = digests(other)
    assert is_same(run, undisturbed, after=4) is True
    # The next attempt has replaced it with something else.
    write_json(run.checkpoint(8) / "progress.json", {"progress": {"awaits_evaluation": False, "best": 1}})
    assert is_same(run, undisturbed, after=8) is False


@pytest.mark.parametrize(
    "row, is_passed",
    [
        (GOOD, True),
        (replace(GOOD, same_bytes=False), False),
        (replace(GOOD, same_bytes=None), False),
        (replace(GOOD, fault="it did not come back by itself"), False),
    ],
)
def test_the_verdict_is_that_of_the_worst_row(row: Row, is_passed: bool) -> None:
    report = Report(cluster="local", task="drill", folder="/runs", rows=[GOOD, row])
    assert report.is_passed is is_passed
    assert report.to_json()["verdict"] == ("passed" if is_passed else "failed")


def test_a_drill_without_rows_proves_nothing() -> None:
    assert not Report(cluster="local", task="drill", folder="/runs").is_passed


# ---- the experiment


def test_the_users_experiment_is_saved_often_and_trains_long_enough(user: User, tmp_path: Path) -> None:
    own = user.experiment()
    drilled = drill_experiment(user.config, ["train.batch_size=16"], tmp_path, 8)
    assert (drilled.train.batch_size, drilled.checkpoint.every_steps) == (16, STRIDE)
    assert drilled.train.epochs >= STRIDE * 10 > own.train.epochs
    assert drilled.checkpoint.keep > 8
    assert (drilled.model, drilled.data, drilled.optimizer) == (own.model, own.data, own.optimizer)


# ---- what a cluster lets one do


def partitions_of(*partitions: str) -> str:
    return "\n".join(f"PartitionName={each}" for each in partitions)


LOW = "low Default=YES GraceTime=10 Nodes=n[1-4] PriorityTier=1 PreemptMode=REQUEUE State=UP"
HIGH = "high Default=NO GraceTime=0 Nodes=n[3-6] PriorityTier=5 PreemptMode=OFF State=UP"
BY_TIER = {"PreemptType": "preempt/partition_prio"}


def test_a_job_is_preempted_by_one_of_a_higher_tier_on_common_hosts() -> None:
    pair = choose_pair(parse_partitions(partitions_of(LOW, HIGH)), BY_TIER, None)
    assert isinstance(pair, Pair)
    assert (pair.low.name, pair.high.name, pair.low.grace_s) == ("low", "high", 10)
    assert pair.hosts == {"n3", "n4"}
    assert choose_pair(parse_partitions(partitions_of(LOW, HIGH)), BY_TIER, "low") == pair


@pytest.mark.parametrize(
    "partitions, config, wanted, words",
    [
        ([LOW, HIGH], {"PreemptType": "preempt/none"}, None, "the cluster's PreemptType is preempt/none"),
        ([LOW, HIGH], {}, None, "PreemptType is unknown"),
        ([LOW], BY_TIER, None, "no jobs of any partition can be preempted"),
        ([LOW, HIGH], BY_TIER, "high", "no jobs of the partition high can be preempted"),
        ([LOW, HIGH], BY_TIER, "night", "the partition night is not up"),
        ([LOW, HIGH.replace("State=UP", "State=DOWN")], BY_TIER, None, "no jobs of any partition"),
        ([LOW, HIGH.replace("n[3-6]", "n[5-6]")], BY_TIER, None, "no jobs of any partition"),
        ([LOW, HIGH.replace("PriorityTier=5", "PriorityTier=1")], BY_TIER, None, "no jobs of any partition"),
        ([LOW.replace("REQUEUE", "CANCEL"), HIGH], BY_TIER, None, "no jobs of any partition"),
    ],
)
def test_reason_is_given_if_nothing_can_be_preempted(
    partitions: list[str], config: dict[str, str], wanted: str | None, words: str
) -> None:
    found = choose_pair(parse_partitions(partitions_of(*partitions)), config, wanted)
    assert isinstance(found, str)
    assert words in found


# ---- the command


def test_drill_refuses_a_wrong_number_of_processes(user: User) -> None:
    answer = user.stk("drill", "--cluster", "local", "--procs", "99")
    assert answer.code == 2
    assert "--procs is 99: it must be from 1 to train.batch_size, " in answer.err
    assert not list(user.experiments.glob("drills/*"))


@pytest.mark.parametrize("config", [["tiny.yaml"], []])
def test_drill_refuses_an_experiment_with_an_error(user: User, config: list[str]) -> None:
    answer = user.stk("drill", *config, "train.epochz=3", "--cluster", "local")
    assert answer.code == 2
    assert "train.epochz" in answer.err
    assert "there is no such key" in answer.err
    assert not list(user.experiments.glob("drills/*"))


@pytest.mark.parametrize("is_passed", [True, False])
def test_drill_keeps_its_folder_only_after_a_failure(
    user: User, monkeypatch: pytest.MonkeyPatch, is_passed: bool
) -> None:
    def run(drill: LocalDrill) -> Iterator[list[Row]]:
        write_json(drill._folder / "left.json", {})
        yield from ([GOOD], [GOOD, replace(GOOD, same_bytes=is_passed)])

    monkeypatch.setattr(LocalDrill, "run", run)
    answer = user.stk("drill", "--cluster", "local", "--json")
    assert answer.code == (0 if is_passed else 4)
    told = json.loads(answer.out)
    assert (told["verdict"], len(told["rows"])) == ("passed" if is_passed else "failed", 2)
    assert Path(told["folder"]).exists() is not is_passed


def test_the_command_prints_a_table_and_a_verdict(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalDrill, "run", lambda drill: (rows for rows in [[GOOD]]))
    answer = user.stk("drill", "--cluster", "local")
    assert answer.code == 0
    assert "preempted" in answer.out
    assert "verdict    passed: it came back each time, with the same bytes" in answer.out
    assert "not tried  what only a cluster can do" in answer.out


def test_without_a_workload_that_has_an_example_a_drill_needs_an_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm.drill.task.first_code", lambda field: "")
    with pytest.raises(UserError, match="CONFIG"):
        drill_experiment(None, [], tmp_path, 8)
