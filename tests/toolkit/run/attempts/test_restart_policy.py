"""Whether a run is retried after an attempt: budgets, failure classes, strikes against hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.toolkit.run.attempts.attempts import crash, start, with_budget
from toolkit.config import Experiment
from toolkit.files import append_json_line, read_json_lines, write_json
from toolkit.reliability.restart_policy import after_failure, after_stop, suspect_hosts
from toolkit.run.attempts.records import explain_last
from toolkit.run.run_dir import RunDir

# -- classes and budgets


@pytest.mark.parametrize(
    "why",
    [
        "killed", "peer_lost", "communication", "hang", "node_failure", "ranks_diverged",
        "device", "launch", "rendezvous", "address_in_use", "io",
    ],
)  # fmt: skip
def test_failure_of_the_infrastructure_is_retried(run: RunDir, plain: Experiment, why: str) -> None:
    crash(run, why)
    decision = after_failure(run, plain)
    assert decision.action == "retry"
    assert "rank 1 on w2" in decision.why


@pytest.mark.parametrize(
    "why", ["input", "out_of_memory", "not_deterministic", "import", "full_disk", "checkpoint", "exception"]
)
def test_failure_of_the_user_is_not_retried(run: RunDir, plain: Experiment, why: str) -> None:
    crash(run, why)
    assert after_failure(run, plain).action == "stop"


def test_crashes_have_a_budget(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(plain, max_crashes=2)
    for step in (5, 9):
        crash(run, "killed", step=step)
        assert after_failure(run, experiment).action == "retry"
    crash(run, "io", step=12)
    decision = after_failure(run, experiment)
    assert decision.action == "stop"
    assert "resources.max_crashes allows 2" in decision.why


def test_preemptions_do_not_use_the_crash_budget(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(plain, max_crashes=1, max_timeouts=0)
    for number in range(50):
        start(run, of=number, to=number + 1, why="preempted")
        assert after_stop(run, experiment, "preempted").action == "retry"
    crash(run, "killed", of=50, step=51)
    assert after_failure(run, experiment).action == "retry"


def test_time_limits_have_a_budget_of_their_own(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(plain, max_crashes=0, max_timeouts=2)
    for number in range(2):
        start(run, of=number, to=number + 1, why="time_limit")
        assert after_stop(run, experiment, "time_limit").action == "retry"
    # attempts.jsonl has no reason for the last signal yet.
    start(run, of=2, to=3, why="SIGUSR2")
    decision = after_stop(run, experiment, "time_limit")
    assert decision.action == "stop"
    assert "resources.max_timeouts is 2" in decision.why
    assert after_stop(run, experiment, "preempted").action == "retry"


def test_cancelled_run_is_not_retried(run: RunDir, plain: Experiment) -> None:
    start(run, of=0, to=5, why="SIGTERM")
    assert after_stop(run, plain, "cancelled").action == "stop"
    explain_last(run, "cancelled", by="somebody")
    assert after_failure(run, plain).action == "stop"
    assert [line["by"] for line in read_json_lines(run.attempts)] == ["somebody"]


@pytest.mark.parametrize("why", ["diverged", "oom_killed", "segfault"])
def test_failure_that_may_recur_is_retried_once_for_each_step(
    run: RunDir, plain: Experiment, why: str
) -> None:
    crash(run, why, step=7)
    assert after_failure(run, plain).action == "retry"
    crash(run, why, step=9)
    assert after_failure(run, plain).action == "retry"
    crash(run, why, step=7)
    decision = after_failure(run, plain)
    assert decision.action == "stop"
    assert "again at the same step" in decision.why


def test_failure_without_a_known_step_may_recur_after_a_save(run: RunDir, plain: Experiment) -> None:
    for facts in ({"saved": False, "wrote": True}, {"saved": True, "wrote": False}):
        start(run, of=0, to=1, why="oom_killed", rank=0, host="w1", **facts)
        assert after_failure(run, plain).action == "retry"
    start(run, of=0, to=1, why="oom_killed", rank=0, host="w1", saved=False, wrote=False)
    assert after_failure(run, plain).action == "stop"


def test_exceptions_are_retried_while_quarantine_looks_for_a_sample(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(replace(plain, train=replace(plain.train, quarantine=1)), max_crashes=2)
    for _ in range(2):
        crash(run, "exception", step=7)
        assert after_failure(run, experiment).action == "retry"
    write_json(run.quarantine, {"samples": [{"id": 3, "step": 8, "reason": "it fails"}]})
    # Its two failures are cured, and so is the budget.
    crash(run, "exception", step=9)
    assert after_failure(run, experiment).action == "retry"
    crash(run, "exception", step=9)
    decision = after_failure(run, experiment)
    assert decision.action == "stop"
    assert "quarantine has not helped" in decision.why


def test_error_before_training_is_not_retried_for_quarantine(run: RunDir, plain: Experiment) -> None:
    experiment = replace(plain, train=replace(plain.train, quarantine=5))
    append_json_line(run.attempts, {"attempt": 1, "nonce": "n", "why": "exception", "rank": 0, "step": 0})
    assert after_failure(run, experiment).action == "stop"


# -- hosts


def test_host_is_excluded_after_two_strikes(run: RunDir, plain: Experiment) -> None:
    crash(run, "hang", host="w2", step=5)
    crash(run, "killed", host="w3", step=6)
    assert after_failure(run, plain).exclude == ()
    crash(run, "ranks_diverged", host="w2", step=7)
    assert after_failure(run, plain).exclude == ("w2",)
    assert after_stop(run, plain, "preempted").exclude == ("w2",)


@pytest.mark.parametrize("why", ["exception", "peer_lost", "rendezvous", "io", "diverged"])
def test_failure_that_does_not_blame_the_host_gives_no_strike(run: RunDir, why: str) -> None:
    for _ in range(3):
        crash(run, why, host="w2")
    assert suspect_hosts(run) == ()


def test_node_failure_named_by_the_scheduler_counts_as_a_strike(run: RunDir) -> None:
    for _ in range(2):
        start(run, of=0, to=4, why="SIGTERM")
        explain_last(run, "node_failure", host="w4")
    assert suspect_hosts(run) == ("w4",)
